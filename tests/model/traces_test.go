package model_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var tracePan = sync.OnceValues(func() (string, error) { return build("protocol.pml", "-DTRACES") })

// follow has the model take traces step by step, and tells for each how many steps it could.
func follow(t *testing.T, traces [][]row) []int {
	t.Helper()
	checker, err := tracePan()
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, rows := range traces {
		for _, r := range rows {
			fmt.Fprintln(&told, r.now, r.who, slices.Index(kinds, r.kind), r.a, r.b)
		}
		fmt.Fprintln(&told, "0 0 0 0 0")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "traces")
	if err := os.WriteFile(file, []byte(told.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, checker, "-E", "-m20000", "-w18")
	cmd.Env, cmd.Dir = append(os.Environ(), "TRACES="+file), dir
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "errors: 0") || strings.Contains(text, "max search depth") {
		t.Fatalf("%v: the traces were not followed:\n%s", err, text[max(0, len(text)-3000):])
	}
	steps := make([]int, len(traces))
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "at" {
			continue
		}
		which, err1 := strconv.Atoi(words[1])
		at, err2 := strconv.Atoi(words[2])
		if err1 != nil || err2 != nil || which >= len(traces) {
			t.Fatalf("the checker says %q", line)
		}
		steps[which] = max(steps[which], at)
	}
	return steps
}

// live300 gives what 300 worlds of the real code did, one for each seed.
func live300(t *testing.T) [][]row {
	t.Helper()
	traces := make([][]row, 300)
	for seed := range traces {
		traces[seed] = live(t, uint64(seed))
	}
	return traces
}

// TestWhatTheRealCodeDoesTheModelCanDo lets ticks, edits and a worker of the real code interleave, and has the model take the same steps.
func TestWhatTheRealCodeDoesTheModelCanDo(t *testing.T) {
	needsSpin(t)
	traces := live300(t)
	if again := live(t, 7); !slices.Equal(again, traces[7]) {
		t.Fatalf("seed 7 gave two histories:\n%v\n%v", traces[7], again)
	}
	count := map[string]int{}
	steps := follow(t, traces)
	for seed, rows := range traces {
		if at := steps[seed]; at < len(rows) {
			t.Errorf("seed %d: the model can't take the last of these steps:\n%s", seed, lines(rows[max(0, at-30):at+1]))
		}
		for _, r := range rows {
			count[r.kind]++
		}
	}
	for _, kind := range kinds[1:] {
		if kind != "LOOK" && kind != "RUNS" && kind != "CHECK" && count[kind] < 100 { // those are the sweep's
			t.Errorf("%d steps %s among %d traces: they show little", count[kind], kind, len(traces))
		}
	}
	t.Logf("%d traces: %v", len(traces), count)
}

func lines(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

// moved gives the trace with a step taken earlier.
func moved(rows []row, from, to int) []row {
	r := rows[from]
	r.now = rows[to].now
	return slices.Insert(slices.Delete(slices.Clone(rows), from, from+1), to, r)
}

// last finds the last step of a process before another, of a kind.
func last(rows []row, before, who int, kind string) int {
	for i := before - 1; i >= 0; i-- {
		if rows[i].who == who && rows[i].kind == kind {
			return i
		}
	}
	return -1
}

// earlier gives a foreign step: one of a kind, taken before the last step of another kind of its process.
func earlier(kind, than string) func([]row, int) ([]row, int) {
	return func(rows []row, i int) ([]row, int) {
		if rows[i].kind != kind {
			return nil, 0
		}
		at := last(rows, i, rows[i].who, than)
		if at < 0 {
			return nil, 0
		}
		if kind == "MOVE" && slices.ContainsFunc(rows[:at], func(r row) bool { // what was overtaken need not be sent
			return (r.kind == "FENCE" || r.kind == "CLAIM") && (r.a>>instants|r.a>>(2*instants))&rows[at].a != 0
		}) {
			return nil, 0
		}
		return moved(rows, i, at), at
	}
}

// other gives one with other figures.
func other(kind string, change func(*row)) func([]row, int) ([]row, int) {
	return func(rows []row, i int) ([]row, int) {
		if rows[i].kind != kind {
			return nil, 0
		}
		rows = slices.Clone(rows)
		change(&rows[i])
		return rows, i
	}
}

// TestAStepThatTheProtocolHasNotIsRefused plants one step in traces of the real code: the model goes as far as that, and no further.
func TestAStepThatTheProtocolHasNotIsRefused(t *testing.T) {
	needsSpin(t)
	traces := live300(t)
	for name, plant := range map[string]func(rows []row, i int) (planted []row, at int){
		"TheCursorBeforeTheSend":         earlier("MOVE", "SEND"),
		"AClaimBeforeThePublish":         earlier("CLAIM", "PUBLISH"),
		"AClaimBeforeTheSuccessor":       earlier("CLAIM", "ARM"),
		"ASendBeforeTheClaim":            earlier("SEND", "CLAIM"),
		"TheJobBeforeTheTimers":          earlier("JOB", "READ"),
		"TheHorizonBeforeTheEdit":        earlier("READX", "EDIT"),
		"TheAnswerBeforeTheFence":        earlier("ANSWER", "FENCE"),
		"TheWatermarkJumps":              other("MOVE", func(r *row) { r.a++ }),
		"TheHorizonFalls":                other("PUBLISH", func(r *row) { r.a-- }),
		"TheHorizonIsTooFar":             other("PUBLISH", func(r *row) { r.a++ }),
		"ATimerIsPassedOver":             other("READ", func(r *row) { r.a ^= 1 << (instants*3 - 1) }),
		"AFenceOfTheGenerationThatEnded": other("FENCE", func(r *row) { r.a >>= instants }),
		"AStartOfAnOlderGenerationAfterTheFence": func(rows []row, i int) ([]row, int) {
			r := rows[i]
			if r.kind != "FENCE" {
				return nil, 0
			}
			return slices.Insert(slices.Clone(rows), i+1, row{now: instants + 1, who: worldProcess, kind: "START", a: r.a >> instants}), i + 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			var planted [][]row
			var at []int
			for _, rows := range traces {
				for i := range rows {
					if foreign, where := plant(rows, i); foreign != nil {
						planted, at = append(planted, foreign), append(at, where)
						break
					}
				}
			}
			if len(planted) < 30 {
				t.Fatalf("only %d traces have room for it", len(planted))
			}
			for n, steps := range follow(t, planted) {
				if steps != at[n] {
					t.Fatalf("the model took %d steps, and not %d:\n%s", steps, at[n], lines(planted[n][:min(len(planted[n]), max(steps, at[n])+1)]))
				}
			}
			t.Logf("refused in %d traces", len(planted))
		})
	}
}
