//go:build emulators

package processes

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// binary is the path of the Belfry that all tests start.
var binary string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "belfry-processes")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "belfry")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/belfry")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
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
			t.Fatalf("%s is not set: run these tests by make test-emulators", at)
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
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
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

// process is one start of the binary.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	greeting map[string]any
	exited   chan struct{}
	log      *os.File
}

// start starts a process that runs for long, and waits until it says that it is ready.
func (h *house) start(args ...string) *process {
	h.t.Helper()
	log, err := os.CreateTemp(h.folder, args[0]+"-*.log")
	if err != nil {
		h.t.Fatal(err)
	}
	p := &process{t: h.t, cmd: exec.Command(binary, append(args, "--output", "json", "--log-format", "text")...), exited: make(chan struct{}), log: log}
	p.cmd.Env, p.cmd.Stderr = h.env, log
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	greeted := make(chan error, 1)
	go func() {
		defer close(p.exited)
		lines := bufio.NewReader(stdout)
		greeted <- json.NewDecoder(lines).Decode(&p.greeting)
		io.Copy(io.Discard, lines)
		p.cmd.Wait()
	}()
	h.t.Cleanup(func() {
		p.kill()
		if h.t.Failed() {
			h.t.Logf("log of belfry %s:\n%s", strings.Join(args, " "), p.said())
		}
	})
	select {
	case err := <-greeted:
		if err != nil {
			h.t.Fatalf("belfry %s: %v\n%s", strings.Join(args, " "), err, p.said())
		}
	case <-time.After(time.Minute):
		h.t.Fatalf("belfry %s said nothing for a minute\n%s", strings.Join(args, " "), p.said())
	}
	return p
}

func (p *process) said() string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kill gives it no moment to tidy up.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop asks it to end, and wants it to end well.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.t.Fatal("it does not end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with exit code %d\n%s", p.cmd.Args[1], code, p.said())
	}
}

// client calls a process that serves.
func (p *process) client(token string) *client.Client {
	p.t.Helper()
	server, err := client.New(client.Config{Address: p.greeting["address"].(string), Token: token, NewKey: rand.Text})
	if err != nil {
		p.t.Fatal(err)
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
func (c *calls) wait(t *testing.T, n int, patience time.Duration) {
	t.Helper()
	deadline := time.After(patience)
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
			t.Fatalf("%d runs were called in %s, want %d", seen, patience, n)
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
