//go:build emulators

package template

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"go.yaml.in/yaml/v3"
)

// The emulator refuses what no policy allows. Its root is whoever has these keys.
var rootUser = sdk.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}

const (
	region   = "eu-central-1"
	sink     = "arn:aws:sqs:" + region + ":000000000000:sink"
	patience = 10 * time.Minute
)

// deployed is a stack of the emulator.
type deployed struct {
	name    string
	outputs map[string]string
}

// emulated makes a copy of what sam build left, with two differences. The policies that want TLS are gone: the emulator speaks HTTP, and
// enforces them. And where an action of SQS is allowed, so is that for a batch: to AWS they are one, to the emulator two. All else is as it
// is deployed to AWS.
func emulated(t *testing.T) string {
	t.Helper()
	built, copied := os.Getenv("BELFRY_BUILT"), t.TempDir()
	if built == "" {
		t.Fatal("BELFRY_BUILT is not set: run this by make test-template")
	}
	templates, err := filepath.Glob(filepath.Join(built, "*", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, file := range append(templates, filepath.Join(built, "template.yaml")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		resources := child(doc.Content[0], "Resources")
		for i := 0; i < len(resources.Content); i += 2 {
			if strings.HasSuffix(resources.Content[i].Value, "TLSOnly") {
				resources.Content = slices.Delete(resources.Content, i, i+2)
				removed++
				i -= 2
			}
		}
		batches(&doc)
		if text, err = yaml.Marshal(&doc); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(copied, strings.TrimPrefix(file, built))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if removed < 3 {
		t.Fatalf("%d policies want TLS, and there should be some for queues and one for the bucket", removed)
	}
	functions, err := filepath.Glob(filepath.Join(built, "*", "bootstrap"))
	if err != nil || len(functions) != 4 {
		t.Fatalf("sam build left the functions %v, want four: %v", functions, err)
	}
	for _, file := range functions {
		name := filepath.Base(filepath.Dir(file))
		if err := os.Symlink(filepath.Dir(file), filepath.Join(copied, name)); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

func batches(node *yaml.Node) {
	for _, action := range []string{"SendMessage", "DeleteMessage", "ChangeMessageVisibility"} {
		if node.Kind == yaml.SequenceNode && slices.ContainsFunc(node.Content, func(n *yaml.Node) bool { return n.Value == "sqs:"+action }) {
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "sqs:" + action + "Batch"})
		}
	}
	for _, inner := range node.Content {
		batches(inner)
	}
}

// tool runs one of SAM's venv, as root of the emulator, and gives what it prints.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if name == "aws" { // which takes a queue's address from its own list otherwise
		args = append(args, "--endpoint-url", os.Getenv("AWS_ENDPOINT_URL"))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("BELFRY_SAM"), name), args...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+rootUser.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+rootUser.SecretAccessKey,
		"AWS_REGION="+region, "AWS_DEFAULT_REGION="+region, "SAM_CLI_TELEMETRY=0", "AWS_PAGER=")
	var said, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, said.String(), wrong.String())
	}
	return said.String()
}

// ask makes one request of the AWS command, and reads its answer.
func ask(t *testing.T, into any, args ...string) {
	t.Helper()
	text := tool(t, "aws", append(args, "--output", "json")...)
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("aws %v: %v: %s", args, err, text)
	}
}

func deploy(t *testing.T, built, name string, parameters ...string) deployed {
	t.Helper()
	architecture := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	tool(t, "sam", append([]string{"deploy", "--template-file", filepath.Join(built, "template.yaml"), "--stack-name", name, "--region", region,
		"--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND", "--s3-bucket", "artifacts", "--s3-prefix", name, "--no-confirm-changeset",
		"--no-fail-on-empty-changeset", "--no-progressbar", "--parameter-overrides", "Architecture=" + architecture, "DeletionProtection=false",
		"FailureAlarm=0"}, parameters...)...)
	return describe(t, name)
}

func describe(t *testing.T, name string) deployed {
	t.Helper()
	var said struct {
		Stacks []struct {
			Outputs []struct{ OutputKey, OutputValue string }
		}
	}
	ask(t, &said, "cloudformation", "describe-stacks", "--stack-name", name)
	d := deployed{name, map[string]string{}}
	for _, o := range said.Stacks[0].Outputs {
		d.outputs[o.OutputKey] = o.OutputValue
	}
	return d
}

// call sends a request, signed by somebody, and gives its status and body.
func (d deployed) call(t *testing.T, who sdk.Credentials, method, path, body string) (int, string) {
	t.Helper()
	address := os.Getenv("AWS_ENDPOINT_URL") + "/restapis/" + d.outputs["ApiId"] + "/" + d.outputs["ApiStage"] + "/_user_request_" + path
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if who.AccessKeyID != "" {
		sum := sha256.Sum256([]byte(body))
		if err := v4.NewSigner().SignHTTP(t.Context(), who, req, hex.EncodeToString(sum[:]), "execute-api", region, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	answer, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (d deployed) must(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	got, text := d.call(t, rootUser, method, path, body)
	if got != status {
		t.Fatalf("stack %s: %s %s: %d, want %d: %s", d.name, method, path, got, status, text)
	}
	return text
}

// until waits for something that the stack does by itself.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for beat := time.NewTicker(500 * time.Millisecond); ; {
		if done() {
			beat.Stop()
			return
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			t.Fatalf("%s: not after %s", what, patience)
		}
	}
}

// user makes somebody with a policy of his own.
func user(t *testing.T, name, policy string) sdk.Credentials {
	t.Helper()
	tool(t, "aws", "iam", "create-user", "--user-name", name)
	if policy != "" {
		tool(t, "aws", "iam", "attach-user-policy", "--user-name", name, "--policy-arn", policy)
	}
	var key struct {
		AccessKey struct{ AccessKeyId, SecretAccessKey string } //nolint:revive // as AWS writes it
	}
	ask(t, &key, "iam", "create-access-key", "--user-name", name)
	return sdk.Credentials{AccessKeyID: key.AccessKey.AccessKeyId, SecretAccessKey: key.AccessKey.SecretAccessKey}
}

// complaints are the missing rights that the functions' logs tell of, each once.
func (d deployed) complaints(t *testing.T) (all []string) {
	t.Helper()
	denied := regexp.MustCompile(`(?i)no right to [^:"]*|[^"]*not authorized[^"]*|[^"]*denied[^"]*`)
	for _, function := range []string{"api", "tick", "worker", "deadletter"} {
		var said struct {
			Events []struct{ Message string }
		}
		ask(t, &said, "logs", "filter-log-events", "--log-group-name", "/aws/lambda/"+d.name+"-"+function)
		if len(said.Events) == 0 && d.name == "one" {
			t.Errorf("the function %s of stack one has logged nothing; it has not worked", function)
		}
		for _, e := range said.Events {
			if m := denied.FindString(e.Message); m != "" && !slices.Contains(all, function+": "+m) {
				all = append(all, function+": "+m)
			}
		}
	}
	return all
}

// Two stacks of one account, under an IAM that is enforced: each does all of its work with the rights that it gives itself, has callers of
// its own, is updated and deleted, and the other never notices.
func TestTwoStacksSideBySide(t *testing.T) {
	built := emulated(t)
	tool(t, "aws", "s3", "mb", "s3://artifacts")
	tool(t, "aws", "sqs", "create-queue", "--queue-name", "sink")
	began := time.Now()
	one := deploy(t, built, "one", "OnDelete=Delete", "TargetArns="+sink, "Pool1=gpu=6h", "LogLevel=debug")
	t.Logf("a stack stands after %s", time.Since(began).Round(time.Second))
	two := deploy(t, built, "two", "OnDelete=Delete")

	t.Run("only callers of a stack get in", func(t *testing.T) {
		caller, stranger := user(t, "caller", one.outputs["CallersPolicy"]), user(t, "stranger", "")
		for _, c := range []struct {
			what   string
			stack  deployed
			who    sdk.Credentials
			status []int
		}{
			{"a caller of one", one, caller, []int{200}},
			{"a caller of one at two", two, caller, []int{403}},
			{"a user with no policy", one, stranger, []int{403}},
			{"nobody", one, sdk.Credentials{}, []int{401, 403}},
		} {
			if got, text := c.stack.call(t, c.who, "GET", "/v1/jobs", ""); !slices.Contains(c.status, got) {
				t.Errorf("%s: %d, want %v: %s", c.what, got, c.status, text)
			}
		}
	})

	t.Run("what SAM makes of the template gives no rights beside its own", func(t *testing.T) {
		var said struct {
			TemplateBody struct {
				Resources map[string]struct {
					Type       string
					Properties map[string]any
				}
			}
		}
		ask(t, &said, "cloudformation", "get-template", "--stack-name", "one", "--template-stage", "Processed")
		mappings := 0
		for name, r := range said.TemplateBody.Resources {
			switch {
			case strings.HasPrefix(r.Type, "AWS::Serverless"):
				t.Errorf("%s is not expanded", name)
			case strings.HasPrefix(r.Type, "AWS::IAM"):
				t.Errorf("%s: SAM has added a %s", name, r.Type)
			case r.Type == "AWS::Lambda::Permission":
				t.Errorf("%s: SAM lets somebody call a function", name)
			case r.Type == "AWS::Lambda::EventSourceMapping":
				mappings++
			}
		}
		if mappings != 5 {
			t.Errorf("%d queues are mapped to functions, want those of three priorities, of ticks and of dead letters", mappings)
		}
	})

	t.Run("a run goes all the way", func(t *testing.T) {
		one.must(t, 201, "PUT", "/v1/jobs/a", `{"schedule": {"every": "10s"}, "target": {"aws": {"arn": "`+sink+`"}}}`)
		tick(t, "one")
		until(t, "a message at the target", func() bool {
			var said struct{ Attributes map[string]string }
			ask(t, &said, "sqs", "get-queue-attributes", "--queue-url", queueURL(t, "sink"), "--attribute-names", "ApproximateNumberOfMessages")
			return said.Attributes["ApproximateNumberOfMessages"] != "0"
		})
		until(t, "a run that succeeded", func() bool {
			return strings.Contains(one.must(t, 200, "GET", "/v1/jobs/a/runs?state=succeeded", ""), `"succeeded"`)
		})
		if jobs := two.must(t, 200, "GET", "/v1/jobs", ""); !strings.Contains(jobs, `"items":[]`) {
			t.Errorf("stack two has jobs: %s", jobs)
		}
	})

	t.Run("a target that no parameter names is refused", func(t *testing.T) {
		other := strings.Replace(sink, ":sink", ":other", 1)
		if got, text := one.call(t, rootUser, "PUT", "/v1/jobs/b", `{"target": {"aws": {"arn": "`+other+`"}}}`); got != 422 {
			t.Errorf("%d, want 422: %s", got, text)
		}
	})

	t.Run("a dead letter is taken", func(t *testing.T) {
		tool(t, "aws", "sqs", "send-message", "--queue-url", queueURL(t, "one-dead"), "--message-body", "no message of Belfry")
		until(t, "an empty queue of dead letters", func() bool {
			var said struct{ Attributes map[string]string }
			ask(t, &said, "sqs", "get-queue-attributes", "--queue-url", queueURL(t, "one-dead"), "--attribute-names", "All")
			return said.Attributes["ApproximateNumberOfMessages"] == "0" && said.Attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
		})
	})

	t.Run("an update keeps what is there", func(t *testing.T) {
		api := one.outputs["ApiId"]
		one = deploy(t, built, "one", "OnDelete=Delete", "TargetArns="+sink, "Pool1=gpu=6h", "Pool2=mail", "LogLevel=info", "HighConcurrency=4")
		if one.outputs["ApiId"] != api {
			t.Error("the update has changed the API's address")
		}
		one.must(t, 200, "GET", "/v1/jobs/a", "")
		until(t, "the new pool", func() bool { return strings.Contains(one.must(t, 200, "GET", "/v1/queues", ""), `"mail"`) })
		one.must(t, 201, "PUT", "/v1/jobs/c", `{"queue": "mail", "target": {"http": {"url": "https://example.org/"}}}`)
		if got, text := two.call(t, rootUser, "PUT", "/v1/jobs/c", `{"queue": "mail", "target": {"http": {"url": "https://example.org/"}}}`); got != 422 {
			t.Errorf("stack two takes a job for a pool that only one has: %d %s", got, text)
		}
	})

	two = deploy(t, built, "two", "OnDelete=Delete", "Working=off", "Auth=jwt", "JwtIssuer=https://issuer.example", "JwtAudience=belfry")

	t.Run("Working=off starts nothing", func(t *testing.T) {
		var said struct {
			EventSourceMappings []struct{ State, EventSourceArn string }
		}
		ask(t, &said, "lambda", "list-event-source-mappings", "--function-name", "two-worker")
		for _, m := range said.EventSourceMappings {
			if m.State != "Disabled" {
				t.Errorf("%s is %s", m.EventSourceArn, m.State)
			}
		}
		if len(said.EventSourceMappings) != 3 {
			t.Errorf("%d queues of the worker, want 3", len(said.EventSourceMappings))
		}
	})

	t.Run("another way to authenticate takes the place of the first", func(t *testing.T) {
		if got, text := two.call(t, rootUser, "GET", "/v1/jobs", ""); got != 401 {
			t.Errorf("a signature where a token is wanted: %d %s", got, text)
		}
		if got, text := two.call(t, sdk.Credentials{}, "GET", "/v1/jobs", ""); got != 401 {
			t.Errorf("nothing where a token is wanted: %d %s", got, text)
		}
	})

	t.Run("no right is missing", func(t *testing.T) {
		for _, d := range []deployed{one, two} {
			for _, line := range d.complaints(t) {
				t.Errorf("stack %s: %s", d.name, line)
			}
		}
	})

	t.Run("a stack goes and the other stays", func(t *testing.T) {
		tool(t, "aws", "cloudformation", "delete-stack", "--stack-name", "two")
		tool(t, "aws", "cloudformation", "wait", "stack-delete-complete", "--stack-name", "two")
		one.must(t, 200, "GET", "/v1/jobs/a", "")
		var left struct{ TableNames []string }
		ask(t, &left, "dynamodb", "list-tables")
		if !slices.Equal(left.TableNames, []string{"one-table"}) {
			t.Errorf("the tables %v are left, want that of one", left.TableNames)
		}
	})
}

func tick(t *testing.T, stack string) {
	t.Helper()
	said := tool(t, "aws", "lambda", "invoke", "--function-name", stack+"-tick", "--payload", "e30=", filepath.Join(t.TempDir(), "answer"))
	if strings.Contains(said, "FunctionError") {
		t.Errorf("the tick of %s failed: %s", stack, said)
	}
}

func queueURL(t *testing.T, name string) string {
	t.Helper()
	var said struct{ QueueUrl string } //nolint:revive // as AWS writes it
	ask(t, &said, "sqs", "get-queue-url", "--queue-name", name)
	return said.QueueUrl
}
