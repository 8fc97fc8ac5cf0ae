// Command lateness measures `belfry dev` from outside: time from start to ready, memory and CPU while nothing is due, and how
// late calls arrive at an HTTP target after their nominal times, both on this host's clock. make bench-lateness runs it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type settings struct {
	binary string
	jobs   int
	length time.Duration
	idle   time.Duration
	starts int
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "belfry", "bin/belfry", "the binary to measure")
	flag.IntVar(&s.jobs, "jobs", 100, "jobs that fire each second")
	flag.DurationVar(&s.length, "for", time.Minute, "how long they fire")
	flag.DurationVar(&s.idle, "idle", 30*time.Second, "how long the idle server is watched")
	flag.IntVar(&s.starts, "starts", 10, "starts, of which the median is told")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "lateness:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "belfry-lateness")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := measureStarts(ctx, s, dir); err != nil {
		return err
	}
	p, _, err := start(ctx, s.binary, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := measureIdle(ctx, s, p); err != nil {
		return err
	}
	return measureLateness(ctx, s, p)
}

// process is a `belfry dev`.
type process struct {
	cmd     *exec.Cmd
	address string
}

// start gives a server that is ready, and how long that took.
func start(ctx context.Context, binary, data string) (*process, time.Duration, error) {
	began := time.Now()
	cmd := exec.CommandContext(ctx, binary, "dev", "--output", "json", "--data", data, "--listen", "127.0.0.1:0", "--log-level", "warn")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	var greeting struct{ Address string }
	if err := json.NewDecoder(stdout).Decode(&greeting); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s did not become ready: %w", binary, err), cmd.Wait())
	}
	return &process{cmd, greeting.Address}, time.Since(began), nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

func measureStarts(ctx context.Context, s settings, dir string) error {
	var empty, used []time.Duration
	for n := range s.starts {
		data := filepath.Join(dir, strconv.Itoa(n))
		for _, took := range []*[]time.Duration{&empty, &used} {
			p, ready, err := start(ctx, s.binary, data)
			if err != nil {
				return err
			}
			p.stop()
			*took = append(*took, ready)
		}
	}
	slices.Sort(empty)
	slices.Sort(used)
	fmt.Printf("start to ready: %s in a new folder, %s in one used before (medians of %d)\n", middle(empty), middle(used), s.starts)
	return nil
}

func middle(sorted []time.Duration) time.Duration {
	return sorted[len(sorted)/2].Round(time.Millisecond)
}

func measureIdle(ctx context.Context, s settings, p *process) error {
	settle := time.NewTimer(5 * time.Second)
	defer settle.Stop()
	watched := time.NewTimer(5*time.Second + s.idle)
	defer watched.Stop()
	if err := wait(ctx, settle.C); err != nil {
		return err
	}
	before, _, err := p.usage(ctx)
	if err != nil {
		return err
	}
	if err := wait(ctx, watched.C); err != nil {
		return err
	}
	after, resident, err := p.usage(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("idle: %.0f MB resident, %.2f%% of one CPU over %s\n", resident/1e6, (after-before)/s.idle.Seconds()*100, s.idle)
	return nil
}

func wait(ctx context.Context, over <-chan time.Time) error {
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usage gives the CPU seconds used so far and the bytes resident now, as the server's metrics tell them.
func (p *process) usage(ctx context.Context) (cpu, resident float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "process_cpu_seconds_total":
			cpu, err = strconv.ParseFloat(value, 64)
		case "process_resident_memory_bytes":
			resident, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return cpu, resident, nil
}

// arrivals is the target of all jobs.
type arrivals struct {
	mu       sync.Mutex
	from, to time.Time // nominal times that count, the first included
	late     []time.Duration
}

func (a *arrivals) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	nominal, err := time.Parse(time.RFC3339Nano, r.Header.Get("Belfry-Nominal-Time"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && !nominal.Before(a.from) && nominal.Before(a.to) {
		a.late = append(a.late, now.Sub(nominal))
	}
}

func measureLateness(ctx context.Context, s settings, p *process) error {
	var a arrivals
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: &a, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	calls, err := client.New(client.Config{Address: p.address, NewKey: func() string { return "unused" }})
	if err != nil {
		return err
	}
	named := make([]wire.NamedJob, s.jobs)
	for n := range named {
		named[n] = wire.NamedJob{Name: fmt.Sprintf("job-%d", n), Definition: job.Definition{
			Schedule: &schedule.Spec{Every: schedule.Duration(time.Second)},
			Target:   target.Spec{HTTP: &target.HTTP{URL: "http://" + listener.Addr().String() + "/"}},
		}}
	}
	verdicts, err := calls.PutJobs(ctx, named)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Problem != nil {
			return fmt.Errorf("job %s: %w", v.Name, v.Problem)
		}
	}
	a.mu.Lock()
	a.from = time.Now().Add(3 * time.Second).Truncate(time.Second) // when the clients' burst is over
	a.to = a.from.Add(s.length)
	a.mu.Unlock()
	over := time.NewTimer(time.Until(a.to) + 5*time.Second) // and what is late by then is missing
	defer over.Stop()
	if err := wait(ctx, over.C); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	want := s.jobs * int(s.length/time.Second)
	if len(a.late) == 0 {
		return fmt.Errorf("none of %d calls arrived", want)
	}
	slices.Sort(a.late)
	at := func(share float64) time.Duration {
		return a.late[int(share*float64(len(a.late)-1))].Round(100 * time.Microsecond)
	}
	fmt.Printf("lateness of %d jobs each second over %s: p50 %s, p99 %s, max %s; %d of %d calls arrived\n",
		s.jobs, s.length, at(0.5), at(0.99), at(1), len(a.late), want)
	if len(a.late) != want {
		return fmt.Errorf("%d calls arrived, want %d", len(a.late), want)
	}
	return nil
}
