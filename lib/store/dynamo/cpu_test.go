//go:build unix

package dynamo_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

const standIn = "BELFRY_TEST_STANDIN"

func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" {
		answerAll()
		return
	}
	os.Exit(m.Run())
}

// answerAll is a DynamoDB in a process of its own, over TLS, that says yes to everything until its input ends.
func answerAll() {
	const body = `{}`
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(body))))
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// BenchmarkCPUOfAWrite says how much CPU this process takes for a conditional write of 400 bytes, with signature and TLS: what bounds a
// tick in a function that has a part of a CPU. The one who answers is another process, whose CPU is not counted.
func BenchmarkCPUOfAWrite(b *testing.B) {
	answers := exec.CommandContext(b.Context(), os.Args[0])
	answers.Env = append(os.Environ(), standIn+"=1")
	answers.Stderr = os.Stderr
	input, err := answers.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := answers.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := answers.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = input.Close(), answers.Wait() }()
	url, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	cfg := config(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * dynamo.Parallel, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}})
	cfg.Endpoint = strings.TrimSpace(url)
	s, err := dynamo.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ops := make([]store.Op, 256)
	for i := range ops {
		ops[i] = store.Op{Kind: store.Put, Key: store.Key{Partition: "run#default#nightly-report#0", Sort: fmt.Sprintf("%015d#", i)}, If: store.Absent,
			Value: make([]byte, 300), Expires: time.Unix(1_800_000_000, 0), Attempt: 1 << 60}
	}
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began, writes := used(), 0
	for b.Loop() {
		verdicts, err := s.WriteEach(b.Context(), ops...)
		if err != nil || verdicts[0].Err != nil {
			b.Fatal(err, verdicts)
		}
		writes += len(ops)
	}
	b.ReportMetric(float64((used()-began).Microseconds())/float64(writes), "cpu-µs/write")
	b.ReportMetric(0, "ns/op")
}
