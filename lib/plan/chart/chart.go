// Package chart draws what a quantity was over time: for a terminal, in plain characters, and as a picture that stands for itself.
package chart

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Panel is one quantity.
type Panel struct {
	Title  string
	Mean   []float64 // by stretch of time
	Most   []float64 // the same, at its highest; nil for none
	Top    float64   // of the scale; 0 for what the figures need
	Format func(float64) string
}

// Chart is some panels over the same time.
type Chart struct {
	Title  string
	About  string // a line below the title
	Panels []Panel
	From   float64 // seconds
	To     float64
}

// levels are a column's heights within a character, in eighths.
var levels = []rune(" ▁▂▃▄▅▆▇█")

const (
	rows  = 8  // of a panel in a terminal
	scale = 10 // columns for the scale at its left
)

// Text draws the chart for a terminal of so many columns, without colour.
func (c Chart) Text(columns int) string {
	var text strings.Builder
	wide := max(columns-scale-1, 20)
	for _, p := range c.Panels {
		top := p.top()
		cells := resample(p.values(), wide)
		fmt.Fprintf(&text, "%s\n", p.Title)
		for row := rows - 1; row >= 0; row-- {
			label := ""
			switch row {
			case rows - 1:
				label = p.Format(top)
			case 0:
				label = p.Format(0)
			case rows / 2:
				label = p.Format(top * (rows / 2) / rows)
			}
			var line strings.Builder
			for _, v := range cells {
				eighths := int(math.Ceil(v/top*rows*8 - 1e-9))
				line.WriteRune(levels[min(max(eighths-row*8, 0), 8)])
			}
			fmt.Fprintf(&text, "%*s%s ┤%s\n", max(0, scale-2-utf8.RuneCountInString(label)), "", label, strings.TrimRight(line.String(), " "))
		}
		text.WriteString(c.axis(wide))
	}
	return text.String()
}

// axis is the time below a panel.
func (c Chart) axis(wide int) string {
	marks, labels := []rune(strings.Repeat("─", wide)), []rune(strings.Repeat(" ", wide+8))
	const ticks = 4
	for i := range ticks + 1 {
		at := i * (wide - 1) / ticks
		marks[at] = '┬'
		label := []rune(clock(c.From + (c.To-c.From)*float64(i)/ticks))
		begin := min(max(at-len(label)/2, 0), wide-len(label))
		copy(labels[begin:], label)
	}
	return strings.Repeat(" ", scale-1) + "└" + string(marks) + "\n" + strings.Repeat(" ", scale) + strings.TrimRight(string(labels), " ") + "\n"
}

// values are what the bars show: the most, where that is told.
func (p Panel) values() []float64 {
	if p.Most != nil {
		return p.Most
	}
	return p.Mean
}

// top is the upper end of the scale: a round number.
func (p Panel) top() float64 {
	if p.Top > 0 {
		return p.Top
	}
	most := 0.0
	for _, v := range p.values() {
		most = max(most, v)
	}
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, round := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
		if round*power >= most {
			return round * power
		}
	}
	return 10 * power
}

// resample makes so many columns of the figures: the highest of those that a column stands for, since a peak is what one looks for.
func resample(values []float64, columns int) []float64 {
	out := make([]float64, columns)
	for i := range out {
		from := i * len(values) / columns
		to := max(from+1, (i+1)*len(values)/columns)
		for _, v := range values[from:min(to, len(values))] {
			out[i] = max(out[i], v)
		}
	}
	return out
}

// clock writes seconds as 2.5s, 45s, 2m30s or 1h15m.
func clock(seconds float64) string {
	to := time.Second
	if seconds < 60 {
		to = 10 * time.Millisecond
	}
	text := time.Duration(seconds * float64(time.Second)).Round(to).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}
