package protocol_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// listed gives what a listing of all jobs shows, page by page, so that many fall between two pages.
func (w *world) listed(tenant string, f control.RunFilter) []run.Run {
	var all []run.Run
	for cursor := ""; ; {
		page, next, err := w.host("lister").control.Runs(context.Background(), tenant, f, cursor, 25)
		w.must(err)
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// checkListed: each run that stands, and is in one of some states (none: any), is listed once, newest first, and nothing else is.
func (w *world) checkListed(states ...run.State) (wrong []string) {
	for _, tenant := range []string{tenant, other} {
		var want []string
		for _, r := range w.runs() {
			if r.Tenant == tenant && r.State != run.Fenced && (len(states) == 0 || slices.Contains(states, r.State)) {
				want = append(want, r.ID.Place())
			}
		}
		wrong = append(wrong, compare(fmt.Sprint(tenant, " ", states), want, w.listed(tenant, control.RunFilter{States: states}))...)
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
