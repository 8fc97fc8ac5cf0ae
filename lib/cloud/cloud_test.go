package cloud_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// service stands for DynamoDB, SQS and S3 at one address, and refuses all as it is told.
type service struct {
	status  int
	code    string // AWS's, for every request; "" to answer as if everything were there, and empty
	message string

	mu    sync.Mutex
	asked []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := r.Header.Get("X-Amz-Target")
	if operation == "" {
		operation = "S3." + r.Method
	}
	s.mu.Lock()
	s.asked = append(s.asked, operation)
	s.mu.Unlock()
	of, name, _ := strings.Cut(operation, ".")
	switch {
	case s.code != "" && of == "S3":
		w.WriteHeader(s.status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", s.code, s.message)
	case s.code != "":
		w.WriteHeader(s.status)
		fmt.Fprintf(w, `{"__type":"com.amazonaws#%s","message":%q}`, s.code, s.message)
	case of == "S3":
		fmt.Fprint(w, "<ListBucketResult></ListBucketResult>")
	case name == "GetQueueUrl":
		fmt.Fprint(w, `{"QueueUrl":"http://sqs/1/q"}`)
	case name == "GetQueueAttributes":
		fmt.Fprint(w, `{"Attributes":{"ApproximateNumberOfMessages":"0","ApproximateNumberOfMessagesDelayed":"0","ApproximateNumberOfMessagesNotVisible":"0"}}`)
	default:
		fmt.Fprint(w, `{}`)
	}
}

// configure makes a host whose AWS configuration leads to the service, and gives what names its engines.
func configure(t *testing.T, s *service) cloud.Config {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL": server.URL, "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	return cloud.Config{Store: "dynamodb://belfry-table", Queue: "sqs://belfry", Blob: "s3://belfry-blobs",
		Queues: []cloud.Pool{{Name: "default", Longest: 14 * time.Minute}, {Name: "gpu"}}, Account: cloud.Host, Now: time.Now, NewID: rand.Uint64}
}

func open(t *testing.T, cfg cloud.Config) *cloud.Data {
	t.Helper()
	d, err := cloud.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestAColdStartAsksOnce: whoever lives for one invocation pays for no request but the one that reads the layout.
func TestAColdStartAsksOnce(t *testing.T) {
	s := new(service)
	d := open(t, configure(t, s))
	if len(s.asked) != 0 {
		t.Errorf("opening asked %v", s.asked)
	}
	targets, err := target.New(target.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	n, err := d.Node(t.Context(), node.Config{Targets: targets, Elapsed: func() time.Duration { return 0 }, Serves: []string{"default"}})
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, operation := range s.asked { // of a table that is empty, which is set up besides
		if strings.HasSuffix(operation, "GetItem") {
			reads++
		}
	}
	if reads != 1 || len(s.asked) != 2 {
		t.Errorf("the node asked %v, want one read, and one write of the layout", s.asked)
	}
	if n.Longest["default"] != 14*time.Minute || !n.Shared || n.Name == "" || len(n.Queues) != 2 {
		t.Errorf("the node has %+v", n.Config)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Errorf("engines that are there: %v", err)
	}
}

// TestWhatIsWrongIsALineEach: an operator who reads the line knows what to do.
func TestWhatIsWrongIsALineEach(t *testing.T) {
	for name, row := range map[string]struct {
		status        int
		code, message string
		want          []string // of each line
	}{
		"expired credentials": {400, "ExpiredTokenException", "The security token included in the request is expired", []string{
			`table "belfry-table" in eu-west-1`, "AWS refuses the credentials", "AWS does not accept the credentials (ExpiredTokenException): renew them", "ExpiredToken"}},
		"no rights": {400, "AccessDeniedException", "not authorized", []string{
			"the credentials lack a right", "allow sqs:GetQueueUrl on it to the role", "belfry-gpu-low"}},
		"no table, no queue": {400, "ResourceNotFoundException", "nothing there", []string{
			`there is no table "belfry-table" in eu-west-1`, `make it by "belfry table create"`, "or name another table or region"}},
		"no queue": {400, "QueueDoesNotExist", "nothing there", []string{
			"there is no queue belfry-default-high in eu-west-1", "there is no queue belfry-gpu-normal"}},
		"no bucket": {404, "NoSuchBucket", "nothing there", []string{
			`there is no bucket "belfry-blobs" in eu-west-1`, "make it, or name another bucket or region"}},
		"bucket of another region": {301, "PermanentRedirect", "elsewhere", []string{
			`the bucket is not in that region: bucket "belfry-blobs" in eu-west-1`, "s3://belfry-blobs?region="}},
		"bucket without rights": {403, "AccessDenied", "no", []string{
			`bucket "belfry-blobs" in eu-west-1`, "allow s3:ListBucket on the bucket"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, configure(t, &service{status: row.status, code: row.code, message: row.message}))
			err := d.Check(t.Context())
			if err == nil {
				t.Fatal("nothing is wrong")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in:\n%v", want, err)
				}
			}
			if lines := strings.Count(err.Error(), "\n") + 1; lines > 8 {
				t.Errorf("%d lines for 8 engines:\n%v", lines, err)
			}
		})
	}
}

func TestNoCredentialsIsOneLine(t *testing.T) {
	s := new(service)
	cfg := configure(t, s)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	err := open(t, cfg).Check(t.Context())
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "no AWS credentials: set AWS_PROFILE") || len(s.asked) > 0 {
		t.Errorf("got %v, after %v", err, s.asked)
	}
}

func TestNobodyAnswers(t *testing.T) {
	cfg := configure(t, new(service))
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	d := open(t, cfg)
	err := d.Check(t.Context())
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{`table "belfry-table" in eu-west-1 at http://127.0.0.1:1 does not answer`, `bucket "belfry-blobs" in eu-west-1 at http://127.0.0.1:1 does not answer`,
		"eu-west-1 at http://127.0.0.1:1 does not answer: see that it can be reached from here"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in:\n%v", want, err)
		}
	}
}

func TestWrongAddressesAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*cloud.Config)
		want   string
	}{
		"store of another kind":   {func(c *cloud.Config) { c.Store = "pebble:///var/lib/belfry" }, "store: got \"pebble:///var/lib/belfry\", want dynamodb://TABLE"},
		"store without a table":   {func(c *cloud.Config) { c.Store = "dynamodb://" }, "want dynamodb://TABLE"},
		"store with a typo":       {func(c *cloud.Config) { c.Store = "dynamodb://belfry?regoin=eu-west-1" }, "want dynamodb://TABLE"},
		"store's endpoint":        {func(c *cloud.Config) { c.Store = "dynamodb://belfry?endpoint=localhost" }, "store endpoint"},
		"queue of another kind":   {func(c *cloud.Config) { c.Queue = "gpu" }, "queue: got \"gpu\", want sqs://PREFIX"},
		"queue with a dot":        {func(c *cloud.Config) { c.Queues = []cloud.Pool{{Name: "a.b"}} }, "letters, digits, - and _"},
		"queue too long":          {func(c *cloud.Config) { c.Queues = []cloud.Pool{{Name: strings.Repeat("a", 70)}} }, "80 characters at most"},
		"bucket of another kind":  {func(c *cloud.Config) { c.Blob = "gs://belfry" }, "blob: got \"gs://belfry\", want s3://BUCKET"},
		"everything is left out":  {func(c *cloud.Config) { c.Store, c.Queue, c.Blob = "", "", "" }, "want dynamodb://TABLE"},
		"clock that is left out":  {func(c *cloud.Config) { c.Now = nil }, "Account, Now and NewID are required"},
		"region that is left out": {func(c *cloud.Config) {}, "set AWS_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configure(t, new(service))
			if strings.HasPrefix(name, "region") {
				t.Setenv("AWS_REGION", "")
			}
			row.change(&cfg)
			if _, err := cloud.Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
