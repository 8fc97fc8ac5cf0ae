package control

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// DeadLetters lists runs that failed for good or are dead and were not discarded, the newest end first.
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
		if !letter.Discarded && f.matches(letter) {
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

// Discard settles dead letters without running them again: they are listed as such no more. Those of a deleted job are settled too. It starts nothing,
// and may be repeated: who has discarded a run first, and what they noted, stays. by is who asks, "" where that is not known.
func (s *Service) Discard(ctx context.Context, tenant string, f DeadFilter, b Bulk, by, note string) (Outcome, error) {
	if err := isText("note", note); err != nil {
		return Outcome{}, err
	}
	if n := utf8.RuneCountInString(note); n > run.MaxNote {
		return Outcome{}, invalid.Field("note", note, fmt.Sprintf("at most %d characters", run.MaxNote))
	}
	return s.bulk(ctx, s.chooseDeadLetters(tenant, f), b, deed{
		do: func(ctx context.Context, id run.ID) (run.Run, error) { return s.discard(ctx, tenant, id, by, note) },
		try: func(ctx context.Context, id run.ID) (run.Run, error) {
			r, err := s.Run(ctx, tenant, id)
			if err == nil {
				err = s.mayDiscard(ctx, r)
			}
			return r, err
		},
	})
}

func (s *Service) discard(ctx context.Context, tenant string, id run.ID, by, note string) (run.Run, error) {
	return s.change(ctx, tenant, id, func(r run.Run, now int64) (run.Run, []store.Op, error) {
		if err := s.mayDiscard(ctx, r); err != nil {
			return r, nil, err
		}
		next, ok := r.Discard(now, by, note)
		if !ok {
			return r, nil, errStands
		}
		letter, err := next.DeadLetterOp(s.NewID())
		return next, []store.Op{letter}, err
	})
}

// mayDiscard tells whether a run is a dead letter.
func (s *Service) mayDiscard(ctx context.Context, r run.Run) error {
	if !r.State.DeadLetter() {
		return refuse(CodeNotDeadLetter, "run %s is %s, and no dead letter: those are runs that failed for good or are dead", r.ID, s.Shown(ctx, r))
	}
	return nil
}

// chooseDeadLetters gives the pages of a filter over dead letters.
func (s *Service) chooseDeadLetters(tenant string, f DeadFilter) chooser[run.ID] {
	return func(ctx context.Context, cursor string, limit int) (chosen[run.ID], error) {
		letters, next, err := s.DeadLetters(ctx, tenant, f, cursor, limit)
		ids := make([]run.ID, len(letters))
		for i, l := range letters {
			ids[i] = l.Run
		}
		return chosen[run.ID]{things: ids, next: next, after: func(i int) string { return letters[i].After(tenant) }}, err
	}
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
