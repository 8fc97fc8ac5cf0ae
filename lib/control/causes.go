package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// Causes is dead letters by the pattern of their errors.
type Causes struct {
	Causes []Cause   // the one with most letters first
	Count  int       // how many letters they are together
	Since  time.Time // how far back was looked: when the oldest of the letters ended; zero for none
	More   bool      // older ones were not looked at
}

// Cause is the dead letters whose errors have one pattern.
type Cause struct {
	Pattern     string
	Newest      DeadLetter
	Count       int
	Jobs        []string // the one with most letters first
	First, Last time.Time
}

// Causes groups the newest dead letters that match, up to so many as one call of their listing looks at.
func (s *Service) Causes(ctx context.Context, tenant string, f DeadFilter) (Causes, error) {
	byPattern := map[string]*cause{}
	found := Causes{}
	next, err := s.eachDeadLetter(ctx, tenant, f, "", examined, func(letter DeadLetter) bool {
		found.Count++
		found.Since = letter.Ended
		pattern := run.Pattern(letter.Error)
		c := byPattern[pattern]
		if c == nil {
			c = &cause{Cause: Cause{Pattern: pattern, Newest: letter, Last: letter.Ended}, jobs: map[string]int{}}
			byPattern[pattern] = c
		}
		c.Count++
		c.First = letter.Ended
		c.jobs[letter.Run.Job]++
		return true
	})
	if err != nil {
		return Causes{}, fmt.Errorf("group dead letters: %w", err)
	}
	if found.More = next != ""; found.More {
		// With a filter it was looked further back than to the last letter that matches.
		place, err := readCursor(next, func(string) bool { return true })
		if err != nil {
			return Causes{}, err
		}
		ended, _, err := run.ParseDeadSort(place)
		if err != nil {
			return Causes{}, err
		}
		found.Since = time.UnixMilli(ended).UTC()
	}
	for _, c := range byPattern {
		c.Jobs = slices.SortedFunc(maps.Keys(c.jobs), func(a, b string) int { return cmp.Or(c.jobs[b]-c.jobs[a], cmp.Compare(a, b)) })
		found.Causes = append(found.Causes, c.Cause)
	}
	slices.SortFunc(found.Causes, func(a, b Cause) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Pattern, b.Pattern)) })
	return found, nil
}

// cause is one in the making.
type cause struct {
	Cause
	jobs map[string]int
}
