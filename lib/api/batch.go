package api

import (
	"sync"

	"github.com/belfry-scheduler/belfry/lib/invalid"
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
	case "/v1/jobs/" + batchPath, "/v1/runs/" + batchPath, "/v1/runs/cancel", "/v1/runs/retry", lastRunsPath:
		return true
	}
	return false
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
