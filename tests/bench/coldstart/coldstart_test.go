//go:build emulators

// Package coldstart measures how long each function takes from the start of its process to its first question for work, and over its
// first invocation, beside engines on the same host. make bench-coldstart runs it.
package coldstart

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const starts = 7 // of each function, of which the median is told

// runtime stands in for Lambda's Runtime API: it gives a process events, and takes its answers.
type runtime struct {
	*httptest.Server
	asked    chan time.Time // the process asks for work
	events   chan string
	answered chan answer
}

type answer struct {
	at   time.Time
	text string
	err  error
}

func newRuntime(t *testing.T) *runtime {
	r := &runtime{asked: make(chan time.Time, 10), events: make(chan string, 10), answered: make(chan answer, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, q *http.Request) {
		r.asked <- time.Now()
		select {
		case event := <-r.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(15*time.Minute).UnixMilli()))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f")
			fmt.Fprint(w, event)
		case <-q.Context().Done():
		}
	})
	take := func(fails bool) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			at := time.Now()
			text, err := io.ReadAll(q.Body)
			if fails && err == nil {
				err = errors.New(string(text))
			}
			r.answered <- answer{at, string(text), err}
			w.WriteHeader(http.StatusAccepted)
		}
	}
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", take(false))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", take(true))
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", take(true))
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

// took is how long the parts of a function's beginning took: its start, the time on a CPU in it, and two invocations.
type took struct{ start, cpu, first, second time.Duration }

// onCPU is how long a process was on a CPU, which is the same on a busy host and on an idle one.
func onCPU(t *testing.T, pid int) (all time.Duration) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no /proc/%d: %v", pid, err)
	}
	for _, task := range tasks {
		var ns time.Duration
		if text, err := os.ReadFile(task); err == nil { // else the thread has ended
			if _, err := fmt.Sscan(string(text), &ns); err != nil {
				t.Fatal(err)
			}
		}
		all += ns
	}
	return all
}

// once starts a function and invokes it twice.
func once(t *testing.T, binary string, env []string, event string) took {
	t.Helper()
	r := newRuntime(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process := exec.CommandContext(ctx, binary)
	process.Env = append(slices.Clone(env), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(r.URL, "http://"))
	var said strings.Builder
	process.Stdout, process.Stderr = &said, &said
	began := time.Now()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}()
	wait := func() time.Time {
		select {
		case at := <-r.asked:
			return at
		case <-ctx.Done():
			t.Fatalf("%s does not ask for work: %s", binary, said.String())
		}
		return time.Time{}
	}
	invoke := func() time.Duration {
		sent := time.Now()
		r.events <- event
		select {
		case a := <-r.answered:
			if a.err != nil {
				t.Fatalf("%s: %v\n%s", binary, a.err, said.String())
			}
			wait()
			return a.at.Sub(sent)
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %s", binary, said.String())
		}
		return 0
	}
	start := wait().Sub(began)
	return took{start, onCPU(t, process.Process.Pid), invoke(), invoke()}
}

func TestColdStarts(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testtest")
	t.Setenv("AWS_REGION", "us-east-1")
	engines := map[string]string{}
	for _, variable := range []string{"BELFRY_TEST_DYNAMODB", "BELFRY_TEST_SQS", "BELFRY_TEST_S3"} {
		if engines[variable] = os.Getenv(variable); engines[variable] == "" {
			t.Fatalf("%s is not set: run this by make bench-coldstart", variable)
		}
	}
	db, mq, s3 := engines["BELFRY_TEST_DYNAMODB"], engines["BELFRY_TEST_SQS"], engines["BELFRY_TEST_S3"]
	cfg, err := config.LoadDefaultConfig(t.Context())
	must(err)
	name := fmt.Sprintf("cold-%08x", rand.Uint32())
	must(dynamo.CreateTable(t.Context(), dynamo.Config{AWS: cfg, Table: name, Endpoint: db, Random: rand.Uint64}))
	_, err = sqs.Create(t.Context(), sqs.Config{Address: sqs.Address{Prefix: name + "-default", Endpoint: mq}, AWS: cfg, Rand: rand.Float64}, name+"-dead", 10)
	must(err)
	buckets := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(s3), true })
	_, err = buckets.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &name})
	must(err)
	at := func(endpoint string) string { return "?endpoint=" + url.QueryEscape(endpoint) }
	env := append(os.Environ(), "BELFRY_STORE=dynamodb://"+name+at(db), "BELFRY_QUEUE=sqs://"+name+at(mq), "BELFRY_BLOB=s3://"+name+at(s3),
		"BELFRY_QUEUES=default=14m", "BELFRY_SHARDS=16", "BELFRY_STACK="+name, "BELFRY_AUTH=iam", "BELFRY_MAX_RECEIVES=10")

	// The run of this message has ended: the worker reads its job, and finds the end by the write that would start it; the other reads it.
	ended := run.Run{ID: run.RequestID("report", time.Now().UnixMilli(), 1), Tenant: "default", State: run.Queued, Priority: queue.Normal, Generation: 1}
	engine, err := dynamo.New(dynamo.Config{AWS: cfg, Table: name, Endpoint: db, Random: rand.Uint64})
	must(err)
	write := func(op store.Op, err error) uint64 {
		t.Helper()
		must(err)
		versions, err := engine.Write(t.Context(), op)
		must(err)
		return versions[0]
	}
	write(job.Job{Tenant: "default", Name: "report", Generation: 1,
		Def: job.Definition{Target: target.Spec{HTTP: &target.HTTP{URL: "https://example.org/hook"}}}.WithDefaults()}.Put(1))
	ended.Version = write(ended.Item(2))
	message, err := run.Message{Run: ended, Sent: time.Now().UnixMilli()}.Encode()
	must(err)
	ended.State = run.Succeeded
	write(ended.Item(3))
	must(engine.Close())
	batch, err := json.Marshal(map[string]any{"Records": []any{map[string]any{"messageId": "m1", "receiptHandle": "r1", "body": base64.StdEncoding.EncodeToString(message),
		"attributes": map[string]string{"ApproximateReceiveCount": "1"}, "eventSource": "aws:sqs",
		"eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:" + name + "-default-normal"}}})
	must(err)
	request, err := os.ReadFile("../../../lib/lambda/gateway/testdata/iam.json")
	must(err)

	t.Logf("%-12s %10s %10s %12s %12s   (medians of %d)", "function", "start", "of it CPU", "first event", "next event", starts)
	for _, f := range []struct{ name, event string }{
		{"api", string(request)}, {"tick", `{}`}, {"worker", string(batch)}, {"deadletter", string(batch)},
	} {
		binary := filepath.Join(os.Getenv("BELFRY_FUNCTIONS"), f.name)
		all := make([]took, starts)
		for i := range all {
			all[i] = once(t, binary, env, f.event)
		}
		median := func(of func(took) time.Duration) time.Duration {
			slices.SortFunc(all, func(a, b took) int { return cmp.Compare(of(a), of(b)) })
			return of(all[starts/2]).Round(time.Millisecond)
		}
		t.Logf("%-12s %10s %10s %12s %12s", f.name, median(func(t took) time.Duration { return t.start }), median(func(t took) time.Duration { return t.cpu }),
			median(func(t took) time.Duration { return t.first }), median(func(t took) time.Duration { return t.second }))
	}
}
