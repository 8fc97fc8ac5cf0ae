package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// What is measured, in the order of the report.
const (
	burnDown    = "burn-down"
	endToEnd    = "end-to-end"
	insertBatch = "insert-batches"
	insert16    = "insert-16"
	insert64    = "insert-64"
)

// singles are the measures of single inserts, by the number of callers.
var singles = map[int]string{16: insert16, 64: insert64}

// figure is one measurement of one round.
type figure struct {
	measure string
	how     string // if a contestant does it in more than one way
	inserted
}

// figures are the three that a burn-down gives.
func (b burnt) figures() []figure {
	return []figure{
		{measure: burnDown, inserted: inserted{perSecond: perSecond(b.jobs, b.worked)}},
		{measure: endToEnd, inserted: inserted{perSecond: perSecond(b.jobs, b.inserted+b.worked)}},
		{measure: insertBatch, inserted: inserted{perSecond: perSecond(b.jobs, b.inserted)}},
	}
}

// contestant is one that is measured.
type contestant struct {
	name     string // as in -systems
	shown    string
	survives string // of what it has acknowledged, when the power goes
	settings []string
	burnDown func(context.Context, int) (burnt, error)
	insert   func(context.Context) ([]figure, error) // of single inserts
}

// bySingles measures a peer's single inserts by each number of callers.
func bySingles(jobs int, insert func(ctx context.Context, callers, jobs int) (inserted, error)) func(context.Context) ([]figure, error) {
	return func(ctx context.Context) ([]figure, error) {
		var figures []figure
		for _, callers := range []int{16, 64} {
			took, err := insert(ctx, callers, jobs)
			if err != nil {
				return nil, err
			}
			figures = append(figures, figure{measure: singles[callers], inserted: took})
		}
		return figures, nil
	}
}

// contest measures all, round by round, each round beginning with another, so that nobody always has the disk after the same
// neighbour. Only one runs at a time.
func contest(ctx context.Context, all []contestant, rounds, jobs int, limit time.Duration, tell io.Writer) ([]row, error) {
	var rows []row
	for round := range rounds {
		for n := range all {
			c := all[(n+round)%len(all)]
			fmt.Fprintf(tell, "round %d of %d, %s: ", round+1, rounds, c.shown)
			figures, err := c.round(ctx, jobs, limit)
			if err != nil {
				fmt.Fprintln(tell)
				return nil, fmt.Errorf("%s: %w", c.shown, err)
			}
			for _, f := range figures {
				fmt.Fprintf(tell, "%s %s  ", strings.TrimSpace(f.measure+" "+f.how), grouped(f.perSecond))
				rows = add(rows, c, f)
			}
			fmt.Fprintln(tell)
		}
	}
	return rows, nil
}

func (c contestant) round(ctx context.Context, jobs int, limit time.Duration) ([]figure, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took over %s; -limit gives more", limit))
	defer cancel()
	settle()
	burnt, err := c.burnDown(ctx, jobs)
	if err != nil {
		return nil, err
	}
	settle()
	single, err := c.insert(ctx)
	return append(burnt.figures(), single...), err
}

// settle writes what the one before has left in memory, so that it is on nobody else's bill, and gives its heap back.
func settle() {
	syscall.Sync()
	debug.FreeOSMemory()
}

// add keeps a figure with those of other rounds.
func add(rows []row, c contestant, f figure) []row {
	at := slices.IndexFunc(rows, func(r row) bool { return r.Measure == f.measure && r.Name == c.name && r.How == f.how })
	if at < 0 {
		at = len(rows)
		rows = append(rows, row{Measure: f.measure, Name: c.name, System: c.shown, How: f.how, Survives: c.survives})
	}
	r := &rows[at]
	r.Each = append(r.Each, f.perSecond)
	if f.p99 > 0 {
		r.P50Each = append(r.P50Each, millis(f.p50))
		r.P99Each = append(r.P99Each, millis(f.p99))
	}
	return rows
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
