package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// death is what found a mutant, and how.
type death struct {
	Package string  `json:"package,omitempty"`
	Test    string  `json:"test,omitempty"`  // with its subtests: "TestX/y"
	Seed    uint64  `json:"seed,omitempty"`  // of the simulation
	Steps   int64   `json:"steps,omitempty"` // of that seed, until it was found; 0 where the world broke down
	Seconds float64 `json:"seconds"`         // of the run that found it, without the build
	Said    string  `json:"said"`            // the first line that told
}

// pattern is the death's test for -test.run.
func (d death) pattern() string {
	parts := strings.Split(d.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

var (
	failed  = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	began   = regexp.MustCompile(`^=== (?:RUN|CONT|NAME)\s+(\S+)`)
	message = regexp.MustCompile(`^\s+[a-z0-9_]+\.go:\d+: `)
	running = regexp.MustCompile(`^\t\t(\S+) \(([0-9hms.]+)\)$`)
)

// heard is what some tests said until one of them failed, or all had ended.
type heard struct {
	death        // Said is "" where nothing was found
	late  string // the test that was under way when their time was over, "" where it was enough

	// Of the simulation, by seed.
	ended     map[uint64]int64 // after so many steps, with nothing found
	short     []world          // that were ended before
	undecided []uint64
}

// try runs some tests until the first one fails, or their time is over.
func (p *planted) try(ctx context.Context, s suite, bound time.Duration, args ...string) (heard, error) {
	binary, err := p.build(ctx, s.Package)
	if err != nil {
		return heard{}, err
	}
	args = append([]string{"-test.v", "-test.failfast", "-test.timeout=" + bound.String()}, args...)
	if s.Run != "" {
		args = append(args, "-test.run="+s.Run)
	}
	within, cancel := context.WithTimeout(ctx, bound+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(within, binary, args...)
	cmd.Dir = filepath.Join(p.root, filepath.FromSlash(s.Package))
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.StdoutPipe()
	if err != nil {
		return heard{}, err
	}
	cmd.Stderr = cmd.Stdout
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return heard{}, err
	}
	h := watch(output, s.Package == simulation.Package)
	h.Package, h.Seconds = s.Package, time.Since(start).Seconds()
	if h.Said != "" || h.late != "" {
		cancel() // the first failure will do
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return heard{}, ctx.Err()
	case h.Said != "", h.late != "", err == nil, len(h.undecided) > 0:
		return h, nil
	case within.Err() != nil:
		h.late = s.String()
		return h, nil
	case errors.As(err, &exit) && !exit.Exited(): // a signal from outside is nothing that the mutant did
		return heard{}, fmt.Errorf("the tests of %s were ended: %w", s.Package, err)
	case exit != nil:
		h.Said = "it ended without a word: " + err.Error()
		return h, nil
	}
	return heard{}, fmt.Errorf("run the tests of %s: %w", s.Package, err)
}

// watch reads what tests say until one of them fails.
func watch(output io.Reader, simulated bool) heard {
	h := heard{ended: map[uint64]int64{}}
	var last, said string // the test that is under way, and the newest complaint
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := began.FindStringSubmatch(line); m != nil {
			last = m[1]
		}
		if message.MatchString(line) {
			said = strings.TrimSpace(line)
			if strings.HasSuffix(said, ":") && lines.Scan() { // a list follows
				said += " " + strings.TrimSpace(lines.Text())
			}
		}
		switch m := failed.FindStringSubmatch(line); {
		case simulated && h.learn(line):
			h.Test, h.Said = last, said
		case m != nil && len(h.undecided) == 0:
			h.Test, h.Said = m[1], said
		case strings.HasPrefix(line, "panic: test timed out"):
			h.late = longest(lines, last)
			return h
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			h.Test, h.Said = last, line
		default:
			continue
		}
		if h.Said == "" {
			h.Said = "failed"
		}
		h.Said = shorten(h.Said, 240)
		return h
	}
	_, _ = io.Copy(io.Discard, output)
	return h
}

// longest reads which tests were under way when time was over, and gives the one that took the most of it; last where none is named.
func longest(lines *bufio.Scanner, last string) string {
	var most time.Duration
	for lines.Scan() && lines.Text() != "" {
		if m := running.FindStringSubmatch(lines.Text()); m != nil {
			if took, err := time.ParseDuration(m[2]); err == nil && took >= most {
				most, last = took, m[1]
			}
		}
	}
	return last
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// killer runs one kind of killer.
func (p *planted) killer(ctx context.Context, s suite, seeds int) (*death, error) {
	if s == simulation {
		return p.simulate(ctx, 1, seeds)
	}
	if s.Run != "" { // some tests, chosen because they find much in little time
		return p.test(ctx, s)
	}
	return p.test(ctx, s, "-test.short")
}

// ordinary gives which ordinary test finds the mutant, nil for none.
func (p *planted) ordinary(ctx context.Context) (*death, error) {
	for _, s := range p.Tests {
		if d, err := p.killer(ctx, s, 0); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// again runs only what found the mutant before.
func (p *planted) again(ctx context.Context, d death) (*death, error) {
	if d.Package == simulation.Package {
		return p.simulate(ctx, d.Seed, 1)
	}
	return p.test(ctx, suite{d.Package, d.pattern()})
}

// hangs is how many times longer than without the mutant a test or a world must at least have taken to be said to hang.
const hangs = 10

// test runs some tests. That their time was over shows nothing by itself: the machine may be busy, and the tests many. The one that was
// under way is run alone, with the mutant and without: where it does not end, and without the mutant does in a tenth of the time, it hangs.
func (p *planted) test(ctx context.Context, s suite, args ...string) (*death, error) {
	h, err := p.try(ctx, s, p.bound, args...)
	if err != nil || h.late == "" {
		return h.found(), err
	}
	if s = (suite{s.Package, death{Test: h.late}.pattern()}); s.Run != "" {
		alone, err := p.try(ctx, s, p.bound, args...)
		if err != nil || alone.Said != "" {
			return alone.found(), err
		}
		if alone.late != "" {
			plain, err := p.without(ctx, s, args...)
			if err != nil {
				return nil, err
			}
			if plain.Said == "" && plain.late == "" && plain.Seconds <= p.bound.Seconds()/hangs {
				return &death{Package: s.Package, Test: h.late, Seconds: alone.Seconds,
					Said: fmt.Sprintf("it hung: it did not end in %s, and without the mutant it takes %.1f s", p.bound, plain.Seconds)}, nil
			}
		}
	}
	p.lateTests = append(p.lateTests, s.Package+" "+h.late)
	return nil, nil
}

// without runs the same without the mutant.
func (p *planted) without(ctx context.Context, s suite, args ...string) (heard, error) {
	plain, err := p.plant(mutant{Name: p.Name + "-without"})
	if err != nil {
		return heard{}, err
	}
	defer plain.uproot()
	return plain.try(ctx, s, p.bound, args...)
}

// found is the death, nil where there is none.
func (h heard) found() *death {
	if h.Said == "" {
		return nil
	}
	return &h.death
}
