//go:build emulators

package processes

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// binary is the path of the Belfry that all tests start.
var binary string

func TestMain(m *testing.M) {
	if url := os.Getenv(load.ReportTo); url != "" {
		os.Exit(load.Report(url)) // this very program is also what jobs start as a command
	}
	os.Exit(process.WithBinary(m, func(built string) { binary = built }))
}

// house is a table, queues and a bucket that processes share.
type house struct {
	t      *testing.T
	name   string
	folder string
	env    []string
}

// newHouse makes them as a user would, but for the bucket.
func newHouse(t *testing.T, name string, queues ...string) *house {
	t.Helper()
	h := &house{t: t, name: name, folder: t.TempDir(), env: append(os.Environ(),
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=testtest", "AWS_CONFIG_FILE=/nowhere", "BELFRY_CONFIG=/nowhere",
		"BELFRY_STORE=dynamodb://"+name+"-table", "BELFRY_QUEUE=sqs://"+name, "BELFRY_BLOB=s3://"+name+"-blobs", "BELFRY_LISTEN=127.0.0.1:0")}
	for variable, at := range map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "BELFRY_TEST_DYNAMODB", "AWS_ENDPOINT_URL_SQS": "BELFRY_TEST_SQS", "AWS_ENDPOINT_URL_S3": "BELFRY_TEST_S3"} {
		endpoint := os.Getenv(at)
		if endpoint == "" {
			t.Fatalf("%s is not set: run these tests by make deep-emulators", at)
		}
		h.env = append(h.env, variable+"="+endpoint)
	}
	where := os.Getenv("BELFRY_TEST_S3")
	buckets := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &where, UsePathStyle: true, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "testtest"}, nil
		})})
	if _, err := buckets.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name + "-blobs")}); err != nil {
		t.Fatal(err)
	}
	h.run("table", "create", "--recovery=false") // which the emulator of DynamoDB has not
	create := []string{"queue", "create"}
	for _, q := range queues {
		create = append(create, "--queue", q)
	}
	h.run(create...)
	return h
}

// run runs a command to its end, and gives what it prints.
func (h *house) run(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.t.Fatalf("belfry %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (h *house) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), process.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = h.env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, errs.String())
	}
	return string(out), err
}

// started is a process of a house.
type started struct {
	*process.Process
	t   *testing.T
	log *os.File
}

// start starts a process that runs for long, and waits until it says that it is ready.
func (h *house) start(args ...string) *started {
	h.t.Helper()
	log := process.Log(h.t)
	return &started{process.Run(h.t, h.command(binary, args...), log), h.t, log}
}

// command is a process that runs for long.
func (h *house) command(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append(args, "--output", "json", "--log-format", "text")...)
	cmd.Env = h.env
	return cmd
}

// stop asks it to end, and wants it to end well.
func (s *started) stop() {
	s.t.Helper()
	s.Stop(s.t)
}

// client calls a process that serves.
func (s *started) client(token string) *client.Client {
	s.t.Helper()
	server, err := client.New(client.Config{Address: s.Address, Token: token, NewKey: rand.Text})
	if err != nil {
		s.t.Fatal(err)
	}
	return server
}

// calls are those that a target has got, by run.
type calls struct {
	mu   sync.Mutex
	seen map[string][]string // attempts
	more chan struct{}       // closed, and made anew, at each call
}

func newCalls() *calls { return &calls{seen: map[string][]string{}, more: make(chan struct{})} }

func (c *calls) note(run, attempt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[run] = append(c.seen[run], attempt)
	close(c.more)
	c.more = make(chan struct{})
}

// wait waits until so many runs were called.
func (c *calls) wait(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(process.Patience)
	for {
		c.mu.Lock()
		seen, more := len(c.seen), c.more
		c.mu.Unlock()
		if seen >= n {
			return
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%d runs were called in %s, want %d", seen, process.Patience, n)
		}
	}
}

// greeted keeps what a process prints, and tells when it has greeted.
type greeted struct {
	mu    sync.Mutex
	text  bytes.Buffer
	once  sync.Once
	ready chan struct{}
}

func (g *greeted) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text.Write(b)
	if text := g.text.String(); strings.Contains(text, "is ready") || strings.Contains(text, "ticks every") {
		g.once.Do(func() { close(g.ready) })
	}
	return len(b), nil
}

func (g *greeted) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}
