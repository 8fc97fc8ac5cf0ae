package control

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// DeadLetters lists runs that failed for good or are dead, the newest end first.
func (s *Service) DeadLetters(ctx context.Context, tenant string, f DeadFilter, cursor string, limit int) (letters []DeadLetter, next string, err error) {
	after, err := readCursor(cursor, func(sort string) bool { _, _, err := run.ParseDeadSort(sort); return err == nil })
	if err != nil {
		return nil, "", err
	}
	limit = pageLimit(limit)
	next, err = s.eachDeadLetter(ctx, tenant, f, after, limit, func(letter DeadLetter) bool {
		letters = append(letters, letter)
		return len(letters) < limit
	})
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	return letters, next, nil
}

// eachDeadLetter visits the dead letters that match, the newest end first, behind a place, "" for none, until visit wants no more. expected
// is about how many it will visit. next is the cursor to go on from: "" where there are no older ones.
func (s *Service) eachDeadLetter(ctx context.Context, tenant string, f DeadFilter, after string, expected int, visit func(DeadLetter) bool) (next string, err error) {
	from, to := "", ""
	if !f.From.IsZero() {
		from = run.SortFrom(max(0, f.From.UnixMilli()))
	}
	if !f.To.IsZero() {
		to = run.SortFrom(max(0, f.To.UnixMilli()))
	}
	to = earlier(to, after)
	seen, enough := 0, false
	err = s.merge(ctx, deadRanges(tenant, from, to, expected), func(_ int, item store.Item) (bool, error) {
		if enough || seen == examined {
			next = cursorAfter(after)
			return false, nil
		}
		seen++
		after = item.Sort
		letter, err := run.DeadLetterFromItem(item)
		if err != nil {
			s.unreadable(tenant, item, err)
			return true, nil
		}
		if f.matches(letter) {
			enough = !visit(DeadLetter{Run: letter.Run, State: letter.State, Ended: time.UnixMilli(letter.Ended).UTC(), Error: letter.Error})
		}
		return true, nil
	})
	return next, err
}

// matches tells whether a filter lets a dead letter through, its time apart.
func (f DeadFilter) matches(letter run.DeadLetter) bool {
	return (f.Job == "" || f.Job == letter.Run.Job) && holds(letter.Error, f.Error) &&
		(f.Pattern == "" || f.Pattern == run.Pattern(letter.Error))
}

// After is the cursor of a page that ends with this dead letter of a tenant, in place of the one that DeadLetters gave.
func (l DeadLetter) After(tenant string) string {
	return cursorAfter(run.Run{ID: l.Run, Tenant: tenant, Ended: l.Ended.UnixMilli()}.DeadKey().Sort)
}

func deadRanges(tenant, from, to string, limit int) []store.Range {
	ranges := make([]store.Range, run.DeadSpread)
	for n := range ranges {
		ranges[n] = store.Range{Partition: run.DeadPartition(tenant, n), From: from, To: to, Backward: true, Limit: pageOf(limit, run.DeadSpread)}
	}
	return ranges
}
