package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/plan/chart"
)

func ramp(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i) / float64(n-1)
	}
	return values
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", v*100) }

func TestAChartFitsItsTerminal(t *testing.T) {
	c := chart.Chart{Title: "x", To: 3600, Panels: []chart.Panel{{Title: "Busy", Mean: ramp(240), Top: 1, Format: percent}}}
	for _, columns := range []int{40, 80, 133} {
		text := c.Text(columns)
		for _, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Errorf("%d columns in a terminal of %d: %q", n, columns, line)
			}
			if strings.TrimRight(line, " ") != line || strings.ContainsRune(line, '\x1b') {
				t.Errorf("blanks at the end, or a colour: %q", line)
			}
		}
	}
	// The shape, not each eighth: every row begins its bars further left than the one above it.
	begins := 1000
	for _, line := range strings.Split(c.Text(40), "\n")[1:9] {
		bars := strings.IndexFunc(line, func(r rune) bool { return r >= '▁' && r <= '█' })
		if bars < 0 || bars >= begins {
			t.Fatalf("this is no ramp:\n%s", c.Text(40))
		}
		begins = bars
	}
}

func TestAPeakIsNeverHidden(t *testing.T) {
	values := make([]float64, 240)
	values[101] = 7
	c := chart.Chart{To: 60, Panels: []chart.Panel{{Title: "Depth", Mean: make([]float64, 240), Most: values, Format: func(v float64) string { return fmt.Sprint(v) }}}}
	if text := c.Text(60); !strings.Contains(text, "█") || !strings.Contains(text, "8 ┤") {
		t.Errorf("a peak of 7 is drawn as\n%s", text)
	}
}

func TestNothingIsDrawnAsNothing(t *testing.T) {
	c := chart.Chart{To: 60, Panels: []chart.Panel{{Title: "Depth", Mean: make([]float64, 240), Format: func(v float64) string { return fmt.Sprint(v) }}}}
	if text := c.Text(80); strings.ContainsAny(text, "▁▂▃▄▅▆▇█") || strings.Contains(text, "NaN") {
		t.Errorf("no depth is drawn as\n%s", text)
	}
	if picture := c.SVG(); strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
		t.Error("no depth gives a picture that is not a number")
	}
}

// TestAPictureStandsForItself: it is well formed, names nothing elsewhere, escapes what it is given, is told to readers of screens, and has
// rules for light and for dark.
func TestAPictureStandsForItself(t *testing.T) {
	c := chart.Chart{Title: `<b>&"12 workers"`, About: "constant", To: 60, Panels: []chart.Panel{{Title: "Busy", Mean: ramp(50), Top: 1, Format: percent}}}
	picture := c.SVG()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "<title>&lt;b&gt;", `role="img"`, "aria-label", "<desc>constant"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	for _, never := range []string{`class=""`, "<script", "href", "url(", "@import", "<b>"} {
		if strings.Contains(picture, never) {
			t.Errorf("the picture has %s", never)
		}
	}
	if strings.Count(picture, "http") != 1 {
		t.Error("it names an address beside that of SVG")
	}
}

// TestTextIsReadable holds the colours of both palettes to the contrast of WCAG 2: 4.5 to 1 for text, against their ground.
func TestTextIsReadable(t *testing.T) {
	for name, p := range chart.Palettes() {
		for what, colour := range map[string]string{"text": p[1], "what is said softly": p[2]} {
			if got := contrast(colour, p[0]); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.1f, want 4.5", name, what, p[0], got)
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
		if v <= 0.03928 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
