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
	Test    string  `json:"test,omitempty"`  // with its subtests: "TestX/y"; of a mutant that hung, the last one begun
	Seed    uint64  `json:"seed,omitempty"`  // of the simulation
	Steps   int64   `json:"steps,omitempty"` // of that seed, until it was found
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
)

// try runs some tests until the first one fails: nil where all pass.
func (p *planted) try(ctx context.Context, s suite, args ...string) (*death, error) {
	binary, err := p.build(ctx, s.Package)
	if err != nil {
		return nil, err
	}
	args = append([]string{"-test.v", "-test.failfast", "-test.timeout=" + p.bound.String()}, args...)
	if s.Run != "" {
		args = append(args, "-test.run="+s.Run)
	}
	within, cancel := context.WithTimeout(ctx, p.bound+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(within, binary, args...)
	cmd.Dir = filepath.Join(p.root, filepath.FromSlash(s.Package))
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found := watch(output, s.Package == simulation.Package)
	found.Package, found.Seconds = s.Package, time.Since(start).Seconds()
	if found.Said != "" {
		cancel() // the first failure will do
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case found.Said != "":
		return &found, nil
	case err == nil:
		return nil, nil
	case within.Err() != nil, errors.As(err, &exit):
		found.Said = "it ended without a word: " + err.Error()
		return &found, nil
	}
	return nil, fmt.Errorf("run the tests of %s: %w", s.Package, err)
}

// watch reads what tests say until one of them fails.
func watch(output io.Reader, simulated bool) (found death) {
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
		case simulated && found.learn(line):
			found.Test, found.Said = last, said
		case m != nil:
			found.Test, found.Said = m[1], said
		case strings.HasPrefix(line, "panic: test timed out"):
			found.Test, found.Said = last, "it hung"
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			found.Test, found.Said = last, line
		default:
			continue
		}
		if found.Said == "" {
			found.Said = "failed"
		}
		found.Said = shorten(found.Said, 240)
		return found
	}
	_, _ = io.Copy(io.Discard, output)
	return found
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
		return p.try(ctx, s)
	}
	return p.try(ctx, s, "-test.short")
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
	return p.try(ctx, suite{d.Package, d.pattern()})
}
