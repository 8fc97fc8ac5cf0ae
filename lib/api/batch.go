package api

import (
	"sync"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// batchPath is a name among the names of jobs and runs that is a path of its own, so no job may have it.
const batchPath = "batch"

// notReserved refuses a job that could not be reached under its name.
func notReserved(field, name string) error {
	if name == batchPath {
		return invalid.Field(field, name, `a name other than "batch", which is a path of its own`)
	}
	return nil
}

// onlyPost tells the paths over many, where other methods would be taken for those of a job or run of that name.
func onlyPost(path string) bool {
	switch path {
	case manyJobs, "/v1/runs/" + batchPath, "/v1/runs/cancel", "/v1/runs/retry", lastRunsPath:
		return true
	}
	return false
}

// explain leaves the first problems of an answer on many their words, up to as many as an answer names wrong fields, and each of those at
// least one of its fields. The others keep what a program acts on: status, code, when to try again, and how many fields are wrong. So the
// answer is bounded by its request, though a request for one of many may have a dozen bytes and a problem some hundred.
func explain(problems []*wire.Problem) {
	left := max(0, invalid.Most-len(problems)) // fields beyond one each
	for i, p := range problems {
		shown := 0
		if i < invalid.Most {
			shown = min(len(p.Errors), 1+left)
			left -= max(0, shown-1)
		} else {
			p.Title, p.Detail = "", ""
		}
		p.MoreErrors += len(p.Errors) - shown
		p.Errors = p.Errors[:shown]
	}
}

// inFlight is how many entries of one batch are worked on at once: enough to share the store's syncs, too few to push
// other requests aside.
const inFlight = 16

// inParallel calls do for 0 to n-1 and waits for all.
func inParallel(n int, do func(i int)) {
	var all sync.WaitGroup
	free := make(chan struct{}, inFlight)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	all.Wait()
}
