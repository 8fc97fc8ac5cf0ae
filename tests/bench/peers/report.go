package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// report is what a contest gives: for people, for programs, and for pages that quote it.
type report struct {
	Machine  machine      `json:"machine"`
	Versions []string     `json:"versions"`
	Rounds   int          `json:"rounds"`
	Jobs     int          `json:"jobs"`    // of a burn-down
	Singles  int          `json:"singles"` // inserts one by one, of the peers
	Settings []settingsOf `json:"settings"`
	Rows     []row        `json:"rows"`
	Ceiling  *ceiling     `json:"pebble_ceiling,omitempty"`
}

// settingsOf is how a contestant was set up.
type settingsOf struct {
	System string   `json:"system"`
	Lines  []string `json:"lines"`
}

// row is one contestant in one discipline.
type row struct {
	Measure   string    `json:"measure"`
	Name      string    `json:"name"`
	System    string    `json:"system"`
	How       string    `json:"how,omitempty"`
	Each      []float64 `json:"per_second_each"` // in the order of the rounds
	P50Each   []float64 `json:"p50_ms_each,omitempty"`
	P99Each   []float64 `json:"p99_ms_each,omitempty"`
	PerSecond float64   `json:"per_second"` // medians
	P50       float64   `json:"p50_ms,omitempty"`
	P99       float64   `json:"p99_ms,omitempty"`
	Min       float64   `json:"per_second_min"`
	Max       float64   `json:"per_second_max"`
	Ratio     float64   `json:"belfry_ratio,omitempty"` // Belfry's median by this one's
	Survives  string    `json:"after_power_loss"`
}

// ceiling is what Belfry's storage engine alone makes durable, as its own benchmark measured it beside each burn-down.
type ceiling struct {
	RunsPerSecond float64 `json:"runs_per_second"`
	OpsPerSecond  float64 `json:"ops_per_second"`
	OpsPerBatch   int     `json:"ops_per_batch"`
	BytesPerOp    int     `json:"bytes_per_op"`
	Share         float64 `json:"share"`
}

// Belfry as it is compared, and with fewer attempts at once.
const (
	belfryName = "belfry"
	belfryDev  = "belfry-dev"
)

// discipline is what contestants are compared in.
type discipline struct{ measure, title, explained string }

var disciplines = []discipline{
	{burnDown, "BURN-DOWN", "From the start of the workers until the last of JOBS jobs that do nothing is recorded as finished"},
	{endToEnd, "END TO END", "The same, and the insert of those jobs before it"},
	{insertBatch, "INSERT IN BATCHES", "That insert alone, while nothing works; Asynq has no batches and inserts one by one, many at once"},
	{insert16, "INSERT ONE BY ONE, 16 CALLERS", "The times are those of one call, until it is answered"},
	{insert64, "INSERT ONE BY ONE, 64 CALLERS", "The same, by more callers"},
}

// finish works out medians and ratios, and sorts rows as they are shown: by discipline, Belfry first, then the fastest.
func finish(rows []row) []row {
	for n := range rows {
		r := &rows[n]
		r.PerSecond, r.P50, r.P99 = median(r.Each), median(r.P50Each), median(r.P99Each)
		r.Min, r.Max = slices.Min(r.Each), slices.Max(r.Each)
	}
	for n := range rows {
		r := &rows[n]
		at := slices.IndexFunc(rows, func(own row) bool { return own.Measure == r.Measure && own.Name == belfryName && own.How == "" })
		if at >= 0 && r.Name != belfryName && r.Name != belfryDev && r.PerSecond > 0 {
			r.Ratio = rows[at].PerSecond / r.PerSecond
		}
	}
	place := func(r row) int {
		return slices.IndexFunc(disciplines, func(d discipline) bool { return d.measure == r.Measure })
	}
	own := func(r row) int {
		switch {
		case r.Name != belfryName && r.Name != belfryDev:
			return 2
		case r.Name == belfryDev || r.How != "":
			return 1
		}
		return 0
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(own(a), own(b)), cmp.Compare(b.PerSecond, a.PerSecond))
	})
	return rows
}

// median is the middle one, or the mean of the two; 0 of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// show writes the table.
func (r report) show(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, %.0f GB, %s, kernel %s\n", cmp.Or(m.CPU, "unknown CPU"), m.Cores, float64(m.Memory)/(1<<30), m.System, m.Kernel)
	fmt.Fprintf(w, "%s, one fsync of 4 KB %.2f ms\n", cmp.Or(m.FileSystem, "unknown file system"), m.Sync)
	fmt.Fprintf(w, "%s\n", strings.Join(r.Versions, ", "))
	fmt.Fprintf(w, "Medians of %d, with the lowest and the highest; one system at a time, all on this machine, servers over a Unix socket.\n", r.Rounds)
	if m.Load > float64(m.Cores)/2 {
		fmt.Fprintf(w, "The machine was busy: a load of %.1f before the first round. Alone, all of them are faster.\n", m.Load)
	}
	for _, d := range disciplines {
		r.showDiscipline(w, d)
	}
	fmt.Fprintln(w, "\nSETTINGS")
	for _, set := range r.Settings {
		fmt.Fprintf(w, "%s\n", set.System)
		for _, line := range set.Lines {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}

func (r report) showDiscipline(w io.Writer, d discipline) {
	var rows []row
	var timed, compared bool
	for _, row := range r.Rows {
		if row.Measure == d.measure {
			rows = append(rows, row)
			timed, compared = timed || row.P99 > 0, compared || row.Ratio > 0
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n%s.\n", d.title, strings.ReplaceAll(d.explained, "JOBS", grouped(float64(r.Jobs))))
	// Numbers stand to the right, so that their digits can be compared from row to row.
	table := [][]string{{"SYSTEM", ">JOBS/S", ">LOWEST", ">HIGHEST"}}
	if timed {
		table[0] = append(table[0], ">P50 MS", ">P99 MS")
	}
	if compared {
		table[0] = append(table[0], ">BELFRY IS")
	}
	table[0] = append(table[0], "AFTER POWER LOSS")
	for _, row := range rows {
		system := row.System
		if row.How != "" {
			system += ", " + row.How
		}
		cells := []string{system, grouped(row.PerSecond), grouped(row.Min), grouped(row.Max)}
		if timed {
			cells = append(cells, fmt.Sprintf("%.2f", row.P50), fmt.Sprintf("%.2f", row.P99))
		}
		if ratio := ""; compared {
			if row.Ratio > 0 {
				ratio = fmt.Sprintf("%.2f x", row.Ratio)
			}
			cells = append(cells, ratio)
		}
		table = append(table, append(cells, row.Survives))
	}
	columns(w, table)
	if c := r.Ceiling; c != nil && d.measure == endToEnd {
		fmt.Fprintf(w, "Belfry's ceiling on this disk is %s: Pebble alone, at the changes a job takes (%s of %d bytes a second, %d a batch). It reached %.0f%%.\n",
			grouped(c.RunsPerSecond), grouped(c.OpsPerSecond), c.BytesPerOp, c.OpsPerBatch, 100*c.Share)
	}
}

// columns writes rows under their heads; a column whose head begins with ">" stands to the right.
func columns(w io.Writer, table [][]string) {
	right := make([]bool, len(table[0]))
	for n, head := range table[0] {
		table[0][n], right[n] = strings.CutPrefix(head, ">")
	}
	for _, cells := range table {
		var line strings.Builder
		for n, cell := range cells {
			width := 0
			for _, other := range table {
				width = max(width, len(other[n]))
			}
			if right[n] {
				width = -width
			}
			fmt.Fprintf(&line, "%*s  ", -width, cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// grouped is a whole number with a comma before every three digits.
func grouped(v float64) string {
	text := strconv.Itoa(int(v + 0.5))
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// middle is the one of the median round; nil of none.
func middle(all []ceiling) *ceiling {
	if len(all) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b ceiling) int { return cmp.Compare(a.RunsPerSecond, b.RunsPerSecond) })
	return &sorted[len(sorted)/2]
}
