package sim

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	span  = flag.Duration("for", 0, "TestSim: how long to run worlds of random seeds, on all processors")
	end   = flag.Int64("end", 0, "a process of TestSim: when its time is over, in Unix seconds; 0: never")
	lane  = flag.Int("lane", 0, "a process of TestSim: which one")
	lanes = flag.Int("lanes", 0, "TestSim: how many processes; default one a processor")
	steps = flag.Duration("steps", 0, "TestSim: only worlds in which a clock may be so far from the true time")
)

// outcome is what a process of TestSim tells of a world, a line each.
type outcome struct {
	Seed      uint64
	Steps     uint64
	Simulated time.Duration
	Took      time.Duration
	Calls     int
	Faults    Counts
	Ended     bool
	Report    string // where a promise was broken
}

const (
	told  = "sim: "
	tells = "begins "
)

// under is how far a world has come, for who looks on from outside of its bubble, where the clock is another.
type under struct {
	steps     atomic.Uint64
	simulated atomic.Int64
	over      atomic.Bool
}

func (u *under) step(s Step) {
	u.steps.Store(s.N)
	u.simulated.Store(int64(s.Since))
}

// tell tells of the world at hand until it is done, and ends it when its time is over.
func (u *under) tell(seed uint64) (done chan struct{}) {
	done = make(chan struct{})
	fmt.Printf("%s%s%d\n", told, tells, seed)
	go func() {
		beat := time.NewTicker(2 * time.Second)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				fmt.Printf("%s%s%d %d %d\n", told, tells, seed, u.steps.Load(), u.simulated.Load())
			case <-done:
				return
			}
			if *end != 0 && time.Now().Unix() >= *end {
				u.over.Store(true)
			}
		}
	}()
	return done
}

// TestLane runs worlds until the time is over, and tells what came of each. TestSim starts it, a process a processor.
func TestLane(t *testing.T) {
	if *lane == 0 {
		asked(t, "it is one of TestSim's processes")
	}
	for s := *from + uint64(*lane-1); (*end == 0 || time.Now().Unix() < *end) && (*seeds == 0 || s < *from+uint64(*seeds)); s += uint64(*lanes) {
		if Draw(s).stepsBy() < *steps {
			continue
		}
		began := time.Now()
		var at under
		done := at.tell(s)
		r := Run(t, Config{Seed: s, Most: *most, OnStep: at.step, Stop: at.over.Load})
		close(done)
		o := outcome{Seed: s, Steps: r.Steps, Simulated: r.Simulated, Took: time.Since(began), Calls: r.Calls, Faults: r.Faults, Ended: r.Ended}
		if len(r.Violations) > 0 {
			o.Report = Report(r, nil)
			simpler, small := Shrink(t, r, nil, time.Now().Add(*shrink))
			o.Report += fmt.Sprintf("shrunk from %d steps to %d:\n%s", r.Steps, small.Steps, Report(small, simpler))
		}
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", told, line)
	}
}

// tally adds up what the processes tell.
type tally struct {
	mu        sync.Mutex
	ended     int // worlds that came to their ends, or broke a promise before
	cut       int // those that were ended before, with nothing found by then: they say nothing of what was still to end
	steps     uint64
	simulated time.Duration
	busy      time.Duration // of all processes together
	calls     int
	faults    Counts
	reports   []string
	at        []passing // by process: the world that it is at
}

// passing is a world that is under way.
type passing struct {
	seed      string
	steps     uint64
	simulated time.Duration
}

// TestSim is `make sim`: worlds of random seeds for as long as -for says, or those of -seeds, and a table of what happened.
func TestSim(t *testing.T) {
	if *span == 0 {
		asked(t, "make sim runs it, for as long as it is told")
	}
	if *from == 0 {
		*from = 1 + uint64(time.Now().UnixNano())%1e12
	}
	n := *lanes
	if n == 0 {
		n = runtime.NumCPU()
	}
	began := time.Now()
	fmt.Printf("seeds from %d on, in %d processes\n", *from, n)
	sum := tally{at: make([]passing, n+1)}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = sum.listen(i+1, n) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	progress := time.NewTicker(10 * time.Second)
	defer progress.Stop()
	for running := true; running; {
		select {
		case <-progress.C:
			sum.progress(time.Since(began))
		case <-done:
			running = false
		}
	}
	sum.table(time.Since(began), n)
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if len(sum.reports) > 0 {
		t.Errorf("%d of %d seeds broke a promise, or are undecided", len(sum.reports), sum.ended)
	}
	if sum.ended == 0 {
		t.Errorf("no world came to its end, so nothing was seen: give it longer than %s", *span)
	}
}

// listen starts a process and takes in what it tells. One that ends before its time has met a world that ended it, which is a failure
// like any other.
func (s *tally) listen(i, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-test.run=^TestLane$", "-test.timeout=0", "-lane="+strconv.Itoa(i), "-lanes="+strconv.Itoa(n), "-from="+strconv.FormatUint(*from, 10),
		"-end="+strconv.FormatInt(time.Now().Add(*span).Unix(), 10), "-seeds="+strconv.Itoa(*seeds), "-most="+strconv.FormatUint(*most, 10), "-steps="+steps.String(), "-shrink="+max(*shrink, time.Minute).String())
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var rest strings.Builder
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if text, ok := strings.CutPrefix(line, told); ok {
			if now, ok := strings.CutPrefix(text, tells); ok {
				s.pass(i, now)
			} else {
				s.add(i, text)
			}
		} else if rest.Len() < 1<<16 {
			rest.WriteString(line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("seed %s ended its process: %w\n%s%s", s.at[i].seed, err, rest.String(), errors.String())
	}
	return nil
}

func (s *tally) pass(i int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[i] = passing{}
	_, _ = fmt.Sscan(text, &s.at[i].seed, &s.at[i].steps, &s.at[i].simulated)
}

func (s *tally) add(i int, text string) {
	var o outcome
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[i] = passing{}
	if o.Ended || o.Report != "" {
		s.ended++
	} else {
		s.cut++
	}
	s.steps += o.Steps
	s.simulated += o.Simulated
	s.busy += o.Took
	s.calls += o.Calls
	s.faults.Add(o.Faults)
	if o.Report != "" {
		s.reports = append(s.reports, o.Report)
		fmt.Println(o.Report)
	}
}

func (s *tally) progress(since time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps, simulated := s.steps, s.simulated
	for _, at := range s.at {
		steps, simulated = steps+at.steps, simulated+at.simulated
	}
	fmt.Printf("%8s  %6d seeds to their ends  %9.1f hours simulated  %11d steps  %10.0f steps a minute  %d violations\n", since.Round(time.Second), s.ended, simulated.Hours(), steps,
		perMinute(float64(steps), since), len(s.reports))
}

func perMinute(n float64, since time.Duration) float64 { return n / math.Max(since.Minutes(), 1e-9) }

func (s *tally) table(since time.Duration, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("time", "%s in %d processes", since.Round(time.Second), n)
	row("seeds to their ends", "%d", s.ended)
	row("seeds cut short", "%d", s.cut)
	row("simulated hours", "%.0f", s.simulated.Hours())
	row("steps", "%d", s.steps)
	row("steps a minute", "%.0f, in one process %.0f", perMinute(float64(s.steps), since), perMinute(float64(s.steps), s.busy))
	row("hours a minute", "%.0f, in one process %.0f", perMinute(s.simulated.Hours(), since), perMinute(s.simulated.Hours(), s.busy))
	row("calls of targets", "%d", s.calls)
	total := 0
	for k, count := range s.faults {
		row("  "+Kind(k).String(), "%d", count)
		total += count
	}
	row("faults", "%d", total)
	row("violations", "in %d of %d seeds", len(s.reports), s.ended)
	_ = w.Flush()
}
