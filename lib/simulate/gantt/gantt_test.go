package gantt_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/simulate/gantt"
)

var start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func at(offset time.Duration) time.Time   { return start.Add(offset) }
func end(offset time.Duration) *time.Time { t := at(offset); return &t }

const minute = time.Minute

// report has a mark of each kind.
func report() simulate.Report {
	hostile := `<b>&"'` + "\x1b[31m\u202e\uffff"
	return simulate.Report{
		Runs: []simulate.Run{
			{Job: "report", NominalTime: at(0), State: "succeeded", StartedAt: end(0), EndedAt: end(25 * minute),
				Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(0), EndedAt: end(25 * minute), Outcome: "succeeded"}}},
			{Job: "report", NominalTime: at(10 * minute), State: "skipped", Reason: "overlap"},
			{Job: "mail", As: &hostile, NominalTime: at(30 * minute), State: "dead", StartedAt: end(30 * minute), EndedAt: end(100 * minute),
				Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(30 * minute), EndedAt: end(40 * minute), Outcome: "failed", Error: hostile},
					{Attempt: 2, StartedAt: at(80 * minute), EndedAt: end(100 * minute), Outcome: "crashed"}}},
			{Job: "mail", NominalTime: at(35 * minute), State: "cancelled", StartedAt: end(35 * minute), EndedAt: end(60 * minute),
				Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(35 * minute), EndedAt: end(60 * minute), Outcome: "cancelled"}}},
			{Job: "mail", NominalTime: at(150 * minute), State: "running", StartedAt: end(150 * minute),
				Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(150 * minute), Outcome: "running"}}},
			{Job: "late", NominalTime: at(150 * minute), State: "scheduled"},
		},
		Skipped: []simulate.Stretch{{Job: "report", From: at(60 * minute), Through: at(90 * minute), Count: 4, Reason: "catch_up"}},
	}
}

func chart(r simulate.Report) gantt.Chart {
	return gantt.Chart{Title: `week<end>.yaml`, Report: r, From: start, To: at(3 * time.Hour)}
}

func TestTextShowsEachKindOfMark(t *testing.T) {
	want := strings.Join([]string{
		"late   │                                             ·········",
		"mail   │         ▒▒▒············▒▒▒▒▒▒               ▶▶▶▶▶▶▶▶▶",
		"       │          ░░░░░░░░",
		"report │████████          ----------",
		"       │   ×",
		"       └┬────────────┬────────────┬────────────┬─────────────┬",
		"        00:00      00:45        01:30        02:15       03:00",
		"",
		"█ attempt   ▒ failed or crashed   ░ cancelled   ▶ still running   · waits   × skipped   - missed",
		"",
	}, "\n")
	if got := chart(report()).Text(62); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// flows has runs of a workflow, which meet.
func flows(steps int) simulate.Report {
	task := func(path string, from, to time.Duration, outcome string) simulate.Step {
		return simulate.Step{Path: path, Kind: "task", State: outcome, ReleasedAt: end(from), StartedAt: end(from), EndedAt: end(to),
			Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(from), EndedAt: end(to), Outcome: outcome}}}
	}
	r := simulate.Report{Runs: []simulate.Run{
		{Job: "etl", NominalTime: at(10 * minute), State: "failed", Reason: "step load is dead: boom", StartedAt: end(30 * minute), EndedAt: end(110 * minute), Steps: []simulate.Step{
			task("extract", 30*minute, 60*minute, "succeeded"),
			{Path: "parts", Kind: "scope", State: "dead", ReleasedAt: end(60 * minute), StartedAt: end(60 * minute), EndedAt: end(110 * minute)},
			task("parts/by-customer/load", 80*minute, 110*minute, "failed"),
			{Path: "pause", Kind: "wait", State: "succeeded", ReleasedAt: end(60 * minute), StartedAt: end(60 * minute), EndedAt: end(80 * minute)},
			{Path: "done", Kind: "pass", State: "upstream_failed"},
		}},
		{Job: "etl", NominalTime: at(100 * minute), State: "running", StartedAt: end(100 * minute), Steps: []simulate.Step{
			{Path: "extract", Kind: "task", State: "queued", ReleasedAt: end(100 * minute)}, task("other", 100*minute, 140*minute, "succeeded"),
		}},
		{Job: "zero", NominalTime: at(0), State: "skipped"},
	}}
	for i := range steps {
		r.Runs[1].Steps = append(r.Runs[1].Steps, task(fmt.Sprintf("s%d", i), 100*minute, 110*minute, "succeeded"))
	}
	return r
}

// Below the runs of a workflow are those of its steps.
func TestStepsAreShownBelowTheirRuns(t *testing.T) {
	want := strings.Join([]string{
		"etl                      │  ·····▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒",
		"                         │                        ▶▶▶▶▶▶▶▶▶▶▶▶▶▶▶▶▶▶▶▶",
		"  extract                │       ████████         ····················",
		"  parts/by-customer/load │                   ▒▒▒▒▒▒▒▒",
		"  pause                  │              ······",
		"  other                  │                        ███████████",
		"zero                     │×",
		"                         └┬─────────┬──────────┬──────────┬──────────┬",
		"                          00:00   00:45      01:30      02:15    03:00",
		"",
		"█ attempt   ▒ failed or crashed   ▶ still running   · waits   × skipped",
		"",
	}, "\n")
	if got := chart(flows(0)).Text(70); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	picture := chart(flows(0)).SVG()
	for _, some := range []string{">…ts/by-customer/load<", "step extract, attempt 1: succeeded, 2026-01-05 00:30:00", "<title>etl at 2026-01-05 00:10:00: failed, 2026-01-05 00:30:00 to 2026-01-05 01:50:00: step load is dead: boom</title>", `class="soft right">extract<`} {
		if !strings.Contains(picture, some) {
			t.Errorf("the picture is without %s:\n%s", some, picture)
		}
	}
	if text := chart(flows(450)).Text(70); !strings.Contains(text, "\n                         │ and 56 steps more\n                         │ and 1 job more\n") {
		t.Errorf("of many steps it shows\n%s", text)
	}
	if !strings.Contains(chart(flows(450)).SVG(), "not drawn: 0 marks, 1 job, 56 steps") {
		t.Error("the picture does not say what it leaves out")
	}
}

func TestTextFitsItsTerminal(t *testing.T) {
	for _, columns := range []int{40, 80, 133} {
		text := chart(report()).Text(columns)
		text, _, _ = strings.Cut(text, "\n\n") // the legend is a sentence
		for _, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > columns || strings.TrimRight(line, " ") != line || strings.ContainsRune(line, '\x1b') {
				t.Errorf("%d columns in a terminal of %d, or a blank at the end, or a colour: %q", n, columns, line)
			}
		}
	}
}

// A run that lasts no time, or lies at either end, is drawn all the same.
func TestNothingIsTooShortToBeSeen(t *testing.T) {
	for name, offset := range map[string]time.Duration{"at the start": 0, "between": 91 * minute, "at the end": 180 * minute, "behind the end": 181 * minute} {
		r := simulate.Report{Runs: []simulate.Run{{Job: "a", NominalTime: at(offset), State: "succeeded", StartedAt: end(offset), EndedAt: end(offset),
			Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(offset), EndedAt: end(offset), Outcome: "succeeded"}}}}}
		if text := chart(r).Text(80); strings.Count(strings.Split(text, "\n")[0], "█") != 1 {
			t.Errorf("%s:\n%s", name, text)
		}
		if picture := chart(r).SVG(); !strings.Contains(picture, `class="ok"`) {
			t.Errorf("%s: no mark", name)
		}
	}
	empty := gantt.Chart{Report: simulate.Report{}, From: start, To: start}
	if text := empty.Text(0); strings.Contains(text, "NaN") || !strings.Contains(text, "└") {
		t.Errorf("nothing at all:\n%s", text)
	}
	if picture := empty.SVG(); strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
		t.Errorf("nothing at all:\n%s", picture)
	}
}

func TestManyRunsStayReadable(t *testing.T) {
	var r simulate.Report
	for i := range 9000 {
		job := fmt.Sprintf("job-%03d", i%300)
		r.Runs = append(r.Runs, simulate.Run{Job: job, NominalTime: at(0), State: "succeeded", StartedAt: end(0), EndedAt: end(time.Hour),
			Attempts: []simulate.Attempt{{Attempt: 1, StartedAt: at(0), EndedAt: end(time.Hour), Outcome: "succeeded"}}})
	}
	text, picture := chart(r).Text(80), chart(r).SVG()
	if lines := strings.Count(text, "\n"); lines > 450 || !strings.Contains(text, "and 10 runs more at the same time") || !strings.Contains(text, "and 280 jobs more") {
		t.Errorf("%d lines:\n%.2000s", lines, text)
	}
	if len(picture) > 2<<20 || !strings.Contains(picture, "not drawn: 200 marks, 280 jobs") {
		t.Errorf("%d bytes", len(picture))
	}
}

// TestAPictureStandsForItself: it is well formed, names nothing elsewhere, escapes what it is given, is told to readers of screens, and has
// rules for light and for dark.
func TestAPictureStandsForItself(t *testing.T) {
	picture := chart(report()).SVG()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "<title>week&lt;end&gt;.yaml</title>", `role="img"`, "aria-label", "<desc>2026-01-05 00:00:00 to 2026-01-05 03:00:00 UTC: 6 runs",
		"&lt;b&gt;&amp;&#34;&#39;", "report at 2026-01-05 00:10:00: skipped, overlap", "4 fires missed"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	for _, never := range []string{`class=""`, "<script", "href", "url(", "@import", "<b>", "\x1b", "\u202e", "\uffff"} {
		if strings.Contains(picture, never) {
			t.Errorf("the picture has %s", never)
		}
	}
	if strings.Count(picture, "http") != 1 {
		t.Error("it names an address beside that of SVG")
	}
	if path := os.Getenv("BELFRY_GANTT"); path != "" {
		os.WriteFile(path, []byte(picture), 0o600)
	}
}

// Text has the contrast that WCAG 2 asks for, 4.5 to 1, and marks 3 to 1; waiting is drawn softly on purpose.
func TestColoursCanBeToldApart(t *testing.T) {
	for name, p := range gantt.Palettes() {
		for i, colour := range p[1:] {
			want := 3.0
			if i < 2 {
				want = 4.5
			}
			if i == 2 {
				continue
			}
			if got := contrast(colour, p[0]); got < want {
				t.Errorf("%s: %s on %s has a contrast of %.1f, want %.1f", name, colour, p[0], got, want)
			}
		}
	}
}

func contrast(a, b string) float64 {
	light, dark := luminance(a), luminance(b)
	if light < dark {
		light, dark = dark, light
	}
	return (light + 0.05) / (dark + 0.05)
}

func luminance(colour string) float64 {
	var rgb [3]int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		panic(err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(rgb[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
