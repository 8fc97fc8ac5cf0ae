package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// reader gives what only reads, of several buckets at once, so that it is no host: those do one step after the other.
func (w *world) reader() *control.Service {
	now := func() time.Time { return base.Add(w.elapsed + w.stepped) }
	d, err := dispatch.New(dispatch.Config{
		Store: w.store, Book: job.NewBook(w.store, w.compile), Queues: map[string]queue.Queue{job.DefaultQueue: w.queue}, Layout: w.layout,
		Now: now, Elapsed: func() time.Duration { return w.elapsed }, NewID: w.newID, LookAhead: w.lookAhead,
	})
	w.must(err)
	s, err := control.New(control.Config{Store: w.store, Blobs: w.blobs, Dispatch: d, Now: now, NewID: w.newID,
		Can: func(string, target.Spec) error { return nil }})
	w.must(err)
	return s
}

// listed gives what a listing of all jobs shows, page by page, so that many fall between two pages.
func (w *world) listed(tenant string, f control.RunFilter) []run.Run {
	reader := w.reader()
	var all []run.Run
	for cursor := ""; ; {
		page, next, err := reader.Runs(context.Background(), tenant, f, cursor, 25)
		w.must(err)
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// checkListed: each run that stands, and is in one of some states (none: any), is listed once, newest first or oldest first, and nothing else is.
func (w *world) checkListed(states ...run.State) (wrong []string) {
	standing := w.runs()
	for _, tenant := range []string{tenant, other} {
		var want []string
		for _, r := range standing {
			if r.Tenant == tenant && r.State != run.Fenced && (len(states) == 0 || slices.Contains(states, r.State)) {
				want = append(want, r.ID.Place())
			}
		}
		wrong = append(wrong, compare(fmt.Sprint(tenant, " ", states), want, w.listed(tenant, control.RunFilter{States: states}))...)
		oldest := w.listed(tenant, control.RunFilter{States: states, Oldest: true})
		slices.Reverse(oldest)
		wrong = append(wrong, compare(fmt.Sprint(tenant, " ", states, ", the oldest first, from behind"), want, oldest)...)
	}
	return wrong
}

func compare(what string, want []string, listed []run.Run) (wrong []string) {
	slices.Sort(want)
	slices.Reverse(want)
	got := make([]string, len(listed))
	for i, r := range listed {
		got[i] = r.ID.Place()
	}
	for _, place := range want {
		if !slices.Contains(got, place) {
			wrong = append(wrong, fmt.Sprintf("%s: %s is not listed", what, place))
		}
	}
	if len(wrong) == 0 && !slices.Equal(got, want) {
		wrong = append(wrong, fmt.Sprintf("%s: listed are %v, want %v", what, got, want))
	}
	return wrong
}
