//go:build emulators

package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// deployed is a stack on emulators, whose queues give a message up after so many receives.
type deployed struct {
	*stack
	raw    *awssqs.Client
	prefix string
	log    *bytes.Buffer
	dead   lambda.SQSHandler
}

func endpoint(t *testing.T, variable string) string {
	t.Helper()
	at := os.Getenv(variable)
	if at == "" {
		t.Fatalf("%s is not set: run these tests by localstack/test", variable)
	}
	return at
}

func deploy(t *testing.T, maxReceives int, call target.Func) *deployed {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testtest")
	t.Setenv("AWS_REGION", "us-east-1")
	db, mq, s3 := endpoint(t, "BELFRY_TEST_DYNAMODB"), endpoint(t, "BELFRY_TEST_SQS"), endpoint(t, "BELFRY_TEST_S3")
	cfg, err := config.LoadDefaultConfig(t.Context())
	must(err)
	name := fmt.Sprintf("fn-%016x", rand.Uint64())
	must(dynamo.CreateTable(t.Context(), dynamo.Config{AWS: cfg, Table: name, Endpoint: db, Random: rand.Uint64}))
	_, err = sqs.Create(t.Context(), sqs.Config{Address: sqs.Address{Prefix: name + "-default", Endpoint: mq}, AWS: cfg, Rand: rand.Float64}, name+"-dead", maxReceives)
	must(err)
	buckets := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(s3), true })
	_, err = buckets.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &name})
	must(err)
	at := func(endpoint string) string { return "?endpoint=" + url.QueryEscape(endpoint) }
	env := map[string]string{"BELFRY_STORE": "dynamodb://" + name + at(db), "BELFRY_QUEUE": "sqs://" + name + at(mq), "BELFRY_BLOB": "s3://" + name + at(s3),
		"BELFRY_MAX_RECEIVES": fmt.Sprint(maxReceives), "BELFRY_STACK": name, "BELFRY_SHARDS": "4"}
	d := &deployed{stack: &stack{t: t, timeout: 15 * time.Minute}, prefix: name, log: new(bytes.Buffer)}
	d.raw = awssqs.NewFromConfig(cfg, func(o *awssqs.Options) { o.BaseEndpoint = aws.String(mq) })
	d.Host, err = lambda.Open(t.Context(), func(name string) string { return env[name] }, io.MultiWriter(d.log, t.Output()))
	must(err)
	t.Cleanup(func() { must(d.Data.Close()) })
	handlers := new(target.Registry)
	must(handlers.Register("f", call))
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	must(err)
	d.invoke, err = calling(d.Host, targets)
	must(err)
	d.dead, err = lambda.DeadLetter(d.Host)
	must(err)
	return d
}

// turn does what an event source mapping does, once: it gives a function what a queue holds, and deletes what is not in its answer.
func (d *deployed) turn(queue string, function lambda.SQSHandler) (messages int) {
	d.t.Helper()
	must := func(err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatal(err)
		}
	}
	at, err := d.raw.GetQueueUrl(d.t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String(d.prefix + "-" + queue)})
	must(err)
	got, err := d.raw.ReceiveMessage(d.t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: at.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll}})
	must(err)
	var event events.SQSEvent
	for _, m := range got.Messages {
		event.Records = append(event.Records, events.SQSMessage{MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:" + d.prefix + "-" + queue})
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), d.timeout)
	defer cancel()
	answer, err := function(ctx, event)
	must(err)
	failed := map[string]bool{}
	for _, f := range answer.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, m := range got.Messages {
		if !failed[*m.MessageId] {
			_, err := d.raw.DeleteMessage(d.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: at.QueueUrl, ReceiptHandle: m.ReceiptHandle})
			must(err)
		}
	}
	return len(got.Messages)
}

func (d *deployed) state(r run.Run) run.State {
	d.t.Helper()
	standing, err := d.Node.Dispatch.ReadRuns(d.t.Context(), []run.Run{r})
	if err != nil {
		d.t.Fatal(err)
	}
	return standing[0].State
}

// A queue that gives a message up after five receives carries a run of fifty attempts.
func TestP10_Fault21_FiftyAttemptsOnAQueueOfFiveReceives(t *testing.T) {
	var calls atomic.Int64
	d := deploy(t, 5, func(context.Context, target.Call) (target.Result, error) {
		calls.Add(1)
		return target.Result{}, errors.New("not yet")
	})
	r := d.run(func(def *job.Definition) {
		def.Timeout = schedule.Duration(10 * time.Second)
		def.Retry = job.Retry{MaxAttempts: 50, Initial: schedule.Duration(time.Millisecond), Factor: 1, Max: schedule.Duration(time.Millisecond)}
	})
	for turns := 0; calls.Load() < 50 && turns < 200; turns++ {
		d.turn("default-normal", d.invoke)
	}
	d.want(r, run.Dead, 50)
	if lost := d.turn("dead", d.dead); lost != 0 {
		t.Errorf("%d messages were given up", lost)
	}
}

// What is given up twice without having been started is dead on its run; what nobody can read is kept in the bucket; and what a worker
// can still run goes back to it.
func TestFault28_TheDeadLetterQueue(t *testing.T) {
	d := deploy(t, 2, succeed)
	doomed, fine := d.run(), d.run()
	at, err := d.raw.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String(d.prefix + "-default-normal")})
	if err != nil {
		t.Fatal(err)
	}
	// dies takes messages and settles nothing, as a function does that is killed.
	dies := func(only run.Run) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
			got, err := d.raw.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: at.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 1, WaitTimeSeconds: 2})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Messages) == 0 {
				return // all are given up
			}
		}
		t.Fatalf("the queue does not give up run %s", only.ID)
	}
	garbage, err := d.raw.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String(d.prefix + "-dead")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.raw.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: garbage.QueueUrl, MessageBody: aws.String("no message of ours")}); err != nil {
		t.Fatal(err)
	}
	dies(doomed)
	for seen := 0; seen < 3; {
		n := d.turn("dead", d.dead)
		if n == 0 {
			t.Fatalf("the dead-letter queue holds %d messages, want 3", seen)
		}
		seen += n
	}
	if !strings.Contains(d.log.String(), "a message cannot be read, and was kept") {
		t.Error("nothing is said of the message that nobody can read")
	}
	// The second run meets a worker that lives; the first does not, again.
	for deadline := time.Now().Add(5 * time.Minute); d.state(fine) != run.Succeeded || d.state(doomed) != run.Succeeded; {
		if time.Now().After(deadline) {
			t.Fatalf("the runs that went back are %s and %s", d.state(doomed), d.state(fine))
		}
		d.turn("default-normal", d.invoke)
	}
	d.want(fine, run.Succeeded, 1)

	killer := d.run()
	for range 2 {
		dies(killer)
		if n := d.turn("dead", d.dead); n != 1 {
			t.Fatalf("%d messages were given up, want that of the run", n)
		}
	}
	if now := d.want(killer, run.Dead, 0); !strings.Contains(now.Reason, "no worker could start it") {
		t.Errorf("the cause is %q", now.Reason)
	}
	letters, _, err := d.Node.Control.DeadLetters(t.Context(), tenant, control.DeadFilter{}, "", 10)
	if err != nil || len(letters) != 1 || letters[0].Run != killer.ID || letters[0].Error == "" {
		t.Fatalf("the dead letters are %+v, %v; want the run with its cause", letters, err)
	}
	redriven, err := d.Node.Control.Redrive(t.Context(), tenant, control.DeadFilter{}, control.Bulk{Runs: []run.ID{killer.ID}})
	if err != nil || redriven.Count != 1 {
		t.Fatalf("redriven: %+v, %v", redriven, err)
	}
	for deadline := time.Now().Add(5 * time.Minute); d.state(killer) != run.Succeeded; {
		if time.Now().After(deadline) {
			t.Fatalf("redriven it is %s", d.state(killer))
		}
		d.turn("default-normal", d.invoke)
	}
}
