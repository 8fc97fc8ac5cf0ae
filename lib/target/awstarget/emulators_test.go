//go:build emulators

package awstarget

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/belfry-scheduler/belfry/lib/target"
)

const (
	region  = "us-east-1"
	account = "000000000000"
)

// TestMain is a Lambda function where the emulator starts this very program as one, and else the tests.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		lambda.Start(report)
		return
	}
	os.Exit(m.Run())
}

// report tells what it was told, and throws where the event says so.
func report(ctx context.Context, event map[string]any) (map[string]any, error) {
	if event["throw"] != nil {
		return nil, fmt.Errorf("no report for %v", event["throw"])
	}
	fmt.Println("report is under way")
	told := map[string]any{"event": event}
	if to, ok := event["to"].(string); ok { // where nobody waits for an answer
		text, err := json.Marshal(told)
		if err != nil {
			return nil, err
		}
		_, err = sqs.NewFromConfig(config(os.Getenv("AWS_ENDPOINT_URL"))).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &to, MessageBody: aws.String(string(text))})
		return nil, err
	}
	return told, nil
}

func config(endpoint string) aws.Config {
	return aws.Config{Region: region, BaseEndpoint: &endpoint, Credentials: keys("test")}
}

func emulator(t *testing.T, variable string) aws.Config {
	t.Helper()
	endpoint := os.Getenv(variable)
	if endpoint == "" {
		t.Fatalf("%s is not set: run these tests by localstack/test", variable)
	}
	return config(endpoint)
}

func arnOf(service, resource string) string {
	return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
}

// queue makes a queue, and gives its URL.
func queue(t *testing.T, cfg aws.Config, name string) string {
	t.Helper()
	in := &sqs.CreateQueueInput{QueueName: &name}
	if strings.HasSuffix(name, ".fifo") {
		in.Attributes = map[string]string{"FifoQueue": "true"}
	}
	made, err := sqs.NewFromConfig(cfg).CreateQueue(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *made.QueueUrl
}

// received waits for one message.
func received(t *testing.T, cfg aws.Config, url string) sqstypes.Message {
	t.Helper()
	out, err := sqs.NewFromConfig(cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 10,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"}})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("received %v, %v, want one message", out, err)
	}
	if _, err := sqs.NewFromConfig(cfg).DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	return out.Messages[0]
}

func call(t *testing.T, cfg aws.Config, to target.AWS, change func(*target.Call)) (target.Result, error) {
	t.Helper()
	one := attempt()
	if change != nil {
		change(&one)
	}
	return New(cfg).Call(t.Context(), to, one)
}

// done fails where the call did.
func done(t *testing.T, cfg aws.Config, to target.AWS, change func(*target.Call)) target.Result {
	t.Helper()
	got, err := call(t, cfg, to, change)
	if err != nil {
		t.Fatalf("call %s: %v", to.ARN, err)
	}
	return got
}

// permanent makes sure that a call failed for good, in words that hold these.
func permanent(t *testing.T, err error, says string) {
	t.Helper()
	var f *target.Failure
	if !errors.As(err, &f) || f.Kind != target.KindAWS || !f.Permanent || !strings.Contains(f.Message, says) {
		t.Errorf("%v, want a permanent failure with %q", err, says)
	}
}

func TestQueues(t *testing.T) {
	for name, variable := range map[string]string{"ElasticMQ": "BELFRY_TEST_SQS", "MiniStack": "BELFRY_TEST_AWS"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := emulator(t, variable)
			url := queue(t, cfg, "targets-orders")
			done(t, cfg, target.AWS{ARN: arnOf("sqs", "targets-orders")}, nil)
			got := received(t, cfg, url)
			for name, want := range map[string]string{"Belfry-Run": "report~0mi8xk2p0", "Belfry-Job": "report", "Belfry-Attempt": "2", "Belfry-Fence": "5",
				"Belfry-Nominal-Time": "2026-11-21T09:00:00Z", "Idempotency-Key": "report~0mi8xk2p0"} {
				if v := aws.ToString(got.MessageAttributes[name].StringValue); v != want {
					t.Errorf("the attribute %s is %q, want %q", name, v, want)
				}
			}
			if *got.Body != `{"day": 1}` {
				t.Errorf("the body is %s", *got.Body)
			}

			fifo := queue(t, cfg, "targets-orders.fifo")
			for attempt := 1; attempt <= 2; attempt++ {
				done(t, cfg, target.AWS{ARN: arnOf("sqs", "targets-orders.fifo")}, func(c *target.Call) { c.Attempt = attempt })
			}
			if got := received(t, cfg, fifo); *got.MessageAttributes["Belfry-Attempt"].StringValue != "1" || got.Attributes["MessageGroupId"] != "report" {
				t.Errorf("the first of two attempts is not what arrived: %v", got.Attributes)
			}
			if out, err := sqs.NewFromConfig(cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &fifo}); err != nil || len(out.Messages) != 0 {
				t.Errorf("the second attempt's message came too: %v, %v", out, err)
			}

			_, err := call(t, cfg, target.AWS{ARN: arnOf("sqs", "targets-nowhere")}, nil)
			permanent(t, err, "there is no arn:aws:sqs")
		})
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	cfg := emulator(t, "BELFRY_TEST_AWS")
	c := awslambda.NewFromConfig(cfg)
	if _, err := c.CreateFunction(t.Context(), &awslambda.CreateFunctionInput{
		FunctionName: aws.String("targets-report"), Runtime: "provided.al2023", Handler: aws.String("bootstrap"), Timeout: aws.Int32(30),
		Role: aws.String("arn:aws:iam::" + account + ":role/any"), Code: &lambdatypes.FunctionCode{ZipFile: thisProgram(t)},
	}); err != nil {
		t.Fatal(err)
	}
	url := queue(t, cfg, "targets-reports")
	arn := arnOf("lambda", "function:targets-report")

	got := done(t, cfg, target.AWS{ARN: arn}, nil)
	// MiniStack hands no client context on to functions: TestWhatEachServiceIsAsked looks at it.
	var told struct{ Event map[string]any }
	if err := json.Unmarshal(got.Body, &told); err != nil || told.Event["day"] != 1.0 {
		t.Errorf("the function was told %s, %v", got.Body, err)
	}

	_, err := call(t, cfg, target.AWS{ARN: arn}, func(c *target.Call) { c.Payload = []byte(`{"throw": "Monday"}`) })
	var f *target.Failure
	if !errors.As(err, &f) || f.Kind != target.KindFunction || f.Permanent || !strings.Contains(f.Message, "no report for Monday") {
		t.Errorf("a function that throws: %v", err)
	}

	done(t, cfg, target.AWS{ARN: arn, Invoke: target.InvokeAsync, RoleARN: "arn:aws:iam::" + account + ":role/reports"}, func(c *target.Call) {
		c.Payload = []byte(fmt.Sprintf(`{"to": %q}`, url))
	})
	var handed struct {
		Event map[string]struct{ Fence int }
	}
	message := received(t, cfg, url)
	_ = json.Unmarshal([]byte(*message.Body), &handed) // of its members only one is an object
	if handed.Event["belfry"].Fence != 5 {
		t.Errorf("the function that nobody waits for was told %s", *message.Body)
	}

	_, err = call(t, cfg, target.AWS{ARN: arnOf("lambda", "function:targets-nowhere")}, nil)
	permanent(t, err, "there is no arn:aws:lambda")
}

// thisProgram is the running test as the code of a function.
func thisProgram(t *testing.T) []byte {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	var packed bytes.Buffer
	to := zip.NewWriter(&packed)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	in, err := to.CreateHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(in, program); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestTopics(t *testing.T) {
	t.Parallel()
	cfg := emulator(t, "BELFRY_TEST_AWS")
	c := sns.NewFromConfig(cfg)
	topic, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("targets-alerts")})
	if err != nil {
		t.Fatal(err)
	}
	url, mails := queue(t, cfg, "targets-alerts"), queue(t, cfg, "targets-mails")
	if _, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String(arnOf("sqs", "targets-alerts")),
		Attributes: map[string]string{"RawMessageDelivery": "true"}}); err != nil {
		t.Fatal(err)
	}
	done(t, cfg, target.AWS{ARN: arnOf("sns", "targets-alerts")}, nil)
	got := received(t, cfg, url)
	if *got.Body != `{"day": 1}` || aws.ToString(got.MessageAttributes["Belfry-Fence"].StringValue) != "5" {
		t.Errorf("a subscriber got %s, %v", *got.Body, got.MessageAttributes)
	}
	if _, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String(arnOf("sqs", "targets-mails"))}); err != nil {
		t.Fatal(err)
	}
	const told = `{"event": "failed", "run": {"id": "report~0mi4lf3k0", "job": "report", "state": "dead"}}`
	done(t, cfg, target.AWS{ARN: arnOf("sns", "targets-alerts")}, func(c *target.Call) { c.Payload = []byte(told) })
	var mailed struct{ Subject, Message string } // as a subscriber by e-mail gets it
	if err := json.Unmarshal([]byte(*received(t, cfg, mails).Body), &mailed); err != nil || mailed.Subject != "report failed" || mailed.Message != told {
		t.Errorf("a subscriber got %+v, %v", mailed, err)
	}

	_, err = call(t, cfg, target.AWS{ARN: arnOf("sns", "targets-nowhere")}, nil)
	permanent(t, err, "there is no arn:aws:sns")
}

func TestBuses(t *testing.T) {
	t.Parallel()
	cfg := emulator(t, "BELFRY_TEST_AWS")
	c := eventbridge.NewFromConfig(cfg)
	bus := aws.String("targets-shop")
	if _, err := c.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: bus}); err != nil {
		t.Fatal(err)
	}
	url := queue(t, cfg, "targets-events")
	if _, err := c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("targets-all"), EventBusName: bus, EventPattern: aws.String(`{"source": ["belfry"], "detail-type": ["report"]}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("targets-all"), EventBusName: bus,
		Targets: []eventtypes.Target{{Id: aws.String("1"), Arn: aws.String(arnOf("sqs", "targets-events"))}}}); err != nil {
		t.Fatal(err)
	}
	done(t, cfg, target.AWS{ARN: arnOf("events", "event-bus/targets-shop")}, nil)
	var event struct {
		Detail struct {
			Day    int
			Belfry struct {
				Run   string
				Fence int
			}
		}
	}
	got := received(t, cfg, url)
	if err := json.Unmarshal([]byte(*got.Body), &event); err != nil || event.Detail.Day != 1 || event.Detail.Belfry.Run != "report~0mi8xk2p0" || event.Detail.Belfry.Fence != 5 {
		t.Errorf("the rule's target got %s, %v", *got.Body, err)
	}
}

func TestStateMachines(t *testing.T) {
	t.Parallel()
	cfg := emulator(t, "BELFRY_TEST_AWS")
	c := sfn.NewFromConfig(cfg)
	made, err := c.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{Name: aws.String("targets-nightly"), RoleArn: aws.String("arn:aws:iam::" + account + ":role/any"),
		Definition: aws.String(`{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 60, "End": true}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	to := target.AWS{ARN: arnOf("states", "stateMachine:targets-nightly")}
	for attempt := 1; attempt <= 2; attempt++ { // the second as after an answer that was lost
		done(t, cfg, to, func(c *target.Call) { c.Attempt, c.Fence = attempt, uint64(attempt) })
	}
	done(t, cfg, to, func(c *target.Call) { c.Run = "report~0mi8xk2p1" })
	list, err := c.ListExecutions(t.Context(), &sfn.ListExecutionsInput{StateMachineArn: made.StateMachineArn})
	if err != nil || len(list.Executions) != 2 {
		t.Fatalf("%d executions, %v, want one for each of two runs", len(list.Executions), err)
	}
	for _, one := range list.Executions {
		if !strings.HasPrefix(*one.Name, "report-") {
			t.Errorf("an execution is called %s", *one.Name)
		}
		shown, err := c.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: one.ExecutionArn})
		if err != nil || !strings.Contains(aws.ToString(shown.Input), `"run":"report~0mi8xk2p`) || !strings.Contains(aws.ToString(shown.Input), `"day": 1`) {
			t.Errorf("its input is %s, %v", aws.ToString(shown.Input), err)
		}
	}
	_, err = call(t, cfg, target.AWS{ARN: arnOf("states", "stateMachine:targets-nowhere")}, nil)
	permanent(t, err, "there is no arn:aws:states")
}
