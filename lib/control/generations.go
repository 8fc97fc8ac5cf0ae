package control

import (
	"context"
	"strconv"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// Generations lists the definitions that a job has had, newest first, the one that stands before all others; a deleted job's too, as long as they
// are kept. A definition that cannot be read is left out.
func (s *Service) Generations(ctx context.Context, tenant, name, cursor string, limit int) (all []job.Kept, next string, err error) {
	if err := job.ValidName(name); err != nil {
		return nil, "", err
	}
	after, err := readCursor(cursor, func(text string) bool { _, ok := generationOf(text); return ok })
	if err != nil {
		return nil, "", err
	}
	j, err := s.Dispatch.Book.Job(ctx, tenant, name)
	if err != nil {
		return nil, "", err
	}
	if j.Generation == 0 {
		return nil, "", existing(&j)
	}
	limit = pageLimit(limit)
	below := j.Generation
	if after == "" {
		all = append(all, job.Kept{Generation: j.Generation, Def: j.Def, Deleted: j.Deleted})
	} else if below, _ = generationOf(after); below >= j.Generation {
		below = j.Generation
	}
	bytes := 0
	for len(all) < limit {
		kept, more, err := s.Dispatch.Book.Replaced(ctx, j, below, min(limit-len(all), generationsAtOnce))
		if err != nil {
			return nil, "", err
		}
		for _, k := range kept {
			below = k.Generation
			if k.Broken != nil {
				s.Log.ErrorContext(ctx, "a replaced definition is unreadable and left out of a listing", "tenant", tenant, "job", name, "generation", k.Generation, "error", k.Broken)
				continue
			}
			all = append(all, k)
			bytes += k.Size
		}
		if !more {
			return all, "", nil
		}
		if bytes > maxJobBytes {
			break
		}
	}
	return all, cursorAfter(strconv.FormatInt(below, 10)), nil
}

// generationsAtOnce is how many replaced definitions are read at once: each may have 300 KB.
const generationsAtOnce = 50

// AfterGeneration is the cursor of a page that ends with this generation, in place of the one that Generations gave.
func AfterGeneration(k job.Kept) string { return cursorAfter(strconv.FormatInt(k.Generation, 10)) }

func generationOf(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}
