// Package model_test runs the model of the protocol, protocol.pml, through spin: everything that it can do within its bounds keeps
// the promises, each rule that is taken out of it is missed, and it can do what the real code does.
package model_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pan is the checker that spin and the C compiler make of the model, made once.
var pan = sync.OnceValues(func() (string, error) { return build("protocol.pml") })

// build gives the checker of a model in this folder.
func build(model string, defines ...string) (string, error) {
	source, err := filepath.Abs(model)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "belfry-model")
	if err != nil {
		return "", err
	}
	made = append(made, dir)
	for _, args := range [][]string{append(append([]string{"spin"}, defines...), "-a", source), {"gcc", "-O2", "-w", "-DSAFETY", "-DMEMLIM=2000", "-DVECTORSZ=4096", "-o", "pan", "pan.c"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return filepath.Join(dir, "pan"), nil
}

var made []string

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range made {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// needsSpin leaves a test out where spin or a C compiler is missing, but never in CI.
func needsSpin(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%v: CI must have it (make test-model installs it)", err)
			}
			t.Skipf("%v: make test-model installs it", err)
		}
	}
}

// explored is what one run of the checker came to.
type explored struct {
	states int
	broken string // the assertion that did not hold; "" where all did
	out    string
}

var (
	storedStates = regexp.MustCompile(`(?m)^ *(\d+) states, stored`)
	violated     = regexp.MustCompile(`assertion violated (\w+)`)
)

// explore runs the checker over everything within bounds; it fails the test where that was not everything.
func explore(t *testing.T, bounds ...string) explored {
	t.Helper()
	return exploreBy(t, pan, bounds...)
}

// exploreBy is explore for the checker of any model.
func exploreBy(t *testing.T, made func() (string, error), bounds ...string) explored {
	t.Helper()
	checker, err := made()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	// -E: where a host sleeps for ever is no deadlock.
	cmd := exec.CommandContext(ctx, checker, "-E", "-m20000", "-w21")
	cmd.Env, cmd.Dir = append(os.Environ(), bounds...), t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		t.Fatalf("%v: %v\n%s", bounds, err, out)
	}
	e := explored{out: string(out)}
	if m := storedStates.FindStringSubmatch(e.out); m != nil {
		e.states, _ = strconv.Atoi(m[1])
	}
	if m := violated.FindStringSubmatch(e.out); m != nil {
		e.broken = m[1]
	} else if !strings.Contains(e.out, "errors: 0") || strings.Contains(e.out, "Search not completed") || strings.Contains(e.out, "max search depth") {
		t.Fatalf("%v: not everything was explored:\n%s", bounds, e.out)
	}
	return e
}

// The bounds under which the protocol is explored; see bounds.pml.
var (
	aheadOfTime = []string{"AHEAD=1", "T=2"}                                              // a tick whose clock is ahead, an edit, a tick that goes well
	soon        = []string{"LAST=4"}                                                      // a tick and an edit, a fire beyond the first horizon
	twoTicks    = []string{"TICKS=2", "EDITS=0", "PASSES=0"}                              // two ticks
	ticksEdit   = []string{"TICKS=2", "EDITS=1", "PASSES=0", "T=0", "LAST=2"}             // two ticks and an edit
	twoEdits    = []string{"TICKS=0", "EDITS=2"}                                          // two edits, a tick that goes well
	wrongClock  = []string{"TICKS=0", "EDITS=2", "WRONG=1", "LAST=5"}                     // two edits, one of them by a clock far ahead, a tick that goes well
	sleepers    = []string{"T=0", "LATE=7"}                                               // a tick and an edit that may sleep beyond the sweep
	sweeping    = []string{"T=0", "LATE=3", "LA=1", "LAG=2", "LAST=5"}                    // sweeps while fires are yet to come
	repeating   = []string{"TICKS=0", "PASSES=2", "REPEATS=1", "T=0", "LATE=7", "LAST=2"} // an edit and its repetition, before and after the sweep
)

func TestP2_P4_P8_TheModelKeepsThePromises(t *testing.T) {
	needsSpin(t)
	var total struct {
		sync.Mutex
		states int
	}
	began := time.Now()
	all := map[string][]string{"Soon": soon, "TwoTicks": twoTicks, "TwoTicksAndAnEdit": ticksEdit, "WrongClock": wrongClock, "Sleepers": sleepers, "Repeating": repeating}
	if !testing.Short() {
		all["AheadOfTime"], all["TwoEdits"], all["Sweeping"] = aheadOfTime, twoEdits, sweeping
	}
	t.Run("bounds", func(t *testing.T) {
		for name, bounds := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := explore(t, bounds...)
				if e.broken != "" {
					t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
				}
				t.Logf("%d states, all of them", e.states)
				total.Lock()
				defer total.Unlock()
				total.states += e.states
			})
		}
	})
	t.Logf("%d states in %s", total.states, time.Since(began).Round(time.Second))
}

// plantedErrors gives the rules that can be taken out, by name: their numbers, as the file has them.
func plantedErrors(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, m := range regexp.MustCompile(`#define (\w+) *\(planted == (\d+)\)`).FindAllStringSubmatch(string(text), -1) {
		rules[m[1]] = m[2]
	}
	return rules
}

func TestEachRuleTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{
		"lateX": soon, "noover": repeating, "sendfirst": sweeping, "noD": sleepers, "movefirst": sleepers, "onlylast": twoEdits, "noreread": twoEdits, "nostretch": twoEdits, "nocut": wrongClock,
	}
	for rule, number := range plantedErrors(t, "errors.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = aheadOfTime
			}
			e := explore(t, append([]string{"PLANTED=" + number}, within...)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
