package dispatch

import "sync"

// Parallel does something with each of some things, at most so many at once, and says which of them it is. Each has its own verdict. Who does which is known
// beforehand, and not a matter of who is faster, so that a simulation can be replayed.
func Parallel[T any](things []T, most int, do func(i int, thing T)) {
	if len(things) == 0 {
		return
	}
	several := min(most, len(things))
	work := func(first int) {
		for i := first; i < len(things); i += several {
			do(i, things[i])
		}
	}
	var others sync.WaitGroup
	for first := 1; first < several; first++ {
		others.Go(func() { work(first) })
	}
	work(0)
	others.Wait()
}
