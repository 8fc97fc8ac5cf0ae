package simulate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// FuzzScenario reads any text as a scenario. What is refused is refused with lines and words, within a bound. What is taken means the same as
// over HTTP, and where it is small it is played: to its end or to a bound, the same each time.
func FuzzScenario(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "scenarios", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("%d seeds, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{
		whole, "start: 2026-01-05T00:00:00Z", `{"start": "2026-01-05T00:00:00Z", "jobs": {"a": {"target": {"handler": {"name": "x"}}}}, "script": [{"at": "0s", "do": "trigger", "runs": [{"job": "a"}]}]}`,
		"start: 2026-01-05T00:00:00Z\nexpect: {runs: [null]}", "a: &a [*a]", "start: 2026-01-05T00:00:00Z\njobs: {a: {status: {}, schedule: null, target: {http: {url: \"http://a\", headers: {A: {secret: b}}}}}}",
		"start: 2026-01-05T00:00:00Z\njobs: {a: {target: {exec: {argv: [a]}}, overlap: {policy: skip}, retry: {factor: 1.5}}}\noutcomes: {a: {by: .attempt, is: {\"1\": [{crashes: true}]}}}",
		begin + nightly, begin + flowed("steps: {a: {fail: {}}, b: {needs: [a], rule: one_failed, "+h+", when: .input.n > 1}}, output: '${ .steps.b.result }'", "w/b: {by: .input.n, is: {\"3\": [{result: {a: 1}}]}}", "{at: 1s, do: cancel, job: w}"),
		"start: 2026-01-05T00:00:00Z\nscript: [{at: 1s, do: clock, by: -2s}, {at: 1s, do: workers, n: 0}, {at: 2s, do: down, for: 1s}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := simulate.Parse("a.yaml", []byte(text))
		if err != nil {
			var wrong *simulate.Mistaken
			if !errors.As(err, &wrong) || len(wrong.Mistakes) == 0 || len(wrong.Mistakes) > invalid.Most {
				t.Fatalf("refused with %v", err)
			}
			last, lines := 0, strings.Count(text, "\n")+strings.Count(text, "\r")+strings.Count(text, "\u0085")+strings.Count(text, "\u2028")+strings.Count(text, "\u2029") // as YAML counts them
			for _, m := range wrong.Mistakes {
				if m.Line < max(last, 1) || m.Line > lines+2 || m.Message == "" || !utf8.ValidString(m.String()) || len(m.String()) > 4096 {
					t.Fatalf("a mistake behind line %d: %+q", last, m)
				}
				last = m.Line
			}
			return
		}
		values, err := manifest.Read("a.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var asked wire.Scenario
		if err := json.Unmarshal(values[0].JSON(), &asked); err != nil {
			t.Fatalf("over HTTP it is refused: %v", err)
		}
		again, err := simulate.Resolve(asked)
		expected := s.Expect
		if s.Expect = nil; err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("over HTTP it is\n%+v, %v\nand in a file\n%+v", again, err, s)
		}
		if s.Until.IsZero() || s.Until.Sub(s.Start) > 6*time.Hour || len(s.Jobs) > 4 || len(s.Script) > 20 {
			return
		}
		var reports [2][]byte
		for i := range reports {
			report, err := simulate.Play(t.Context(), s, simulate.Options{Runs: 50, Attempts: 60})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := expected.Compare(report); err != nil {
				t.Fatal(err)
			}
			if reports[i], err = json.Marshal(report); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(reports[0], reports[1]) {
			t.Fatalf("it gives\n%s\nand\n%s", reports[0], reports[1])
		}
	})
}
