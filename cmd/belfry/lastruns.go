package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Last runs are asked for by as many jobs as one request takes.
const (
	lastRunsShown = 10
	jobsPerLook   = 100
)

// jobWithRuns is a job beside its last runs.
type jobWithRuns struct {
	wire.Job
	LastRuns        []wire.LastRun `json:"last_runs"`
	LastSucceededAt time.Time      `json:"last_succeeded_at,omitzero"`
}

// withLastRuns adds their last runs to the jobs of a listing, most of them at the most, 0 for all.
func withLastRuns(ctx context.Context, server *client.Client, jobs iter.Seq2[wire.Job, error], most int) iter.Seq2[jobWithRuns, error] {
	return func(yield func(jobWithRuns, error) bool) {
		var held []wire.Job
		flush := func() bool {
			if len(held) == 0 {
				return true
			}
			names := make([]string, len(held))
			for i, j := range held {
				names[i] = j.Name
			}
			last, err := server.LastRuns(ctx, names, lastRunsShown)
			if err != nil {
				yield(jobWithRuns{}, err)
				return false
			}
			for i, j := range held {
				if !yield(jobWithRuns{j, last[i].Runs, last[i].LastSucceededAt}, nil) {
					return false
				}
			}
			held = held[:0]
			return true
		}
		count := 0
		for j, err := range jobs {
			if err != nil {
				if flush() {
					yield(jobWithRuns{}, err)
				}
				return
			}
			held = append(held, j)
			if count++; count == most {
				break
			}
			if len(held) == jobsPerLook && !flush() {
				return
			}
		}
		flush()
	}
}

// lastState is that of the newest run whose time has come, "" for none.
func (j jobWithRuns) lastState() string {
	if len(j.LastRuns) == 0 {
		return ""
	}
	return j.LastRuns[0].State
}

// runMarks are the states of runs in a character each.
var runMarks = map[string]string{"succeeded": "+", "failed": "!", "dead": "!", "unknown": "?", "cancelled": "x", "skipped": "-",
	"running": ">", "retrying": "~", "waiting": ":", "queued": ".", "scheduled": "."}

// marks shows runs in a character each, the newest, which stands first in the list, as the last.
func marks(runs []wire.LastRun) string {
	var text strings.Builder
	for i := len(runs) - 1; i >= 0; i-- {
		mark, ok := runMarks[runs[i].State]
		if !ok {
			mark = "?"
		}
		text.WriteString(mark)
	}
	return text.String()
}
