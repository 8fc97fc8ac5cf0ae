package control

import (
	"container/heap"
	"context"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// place is a run that a listing comes to, by where it stands in the order.
type place struct {
	id   run.ID
	sort string
}

// places is a heap: what goes out first stands first.
type places struct {
	of     []place
	oldest bool // the oldest goes out first, else the newest
}

func (h *places) Len() int           { return len(h.of) }
func (h *places) Less(i, j int) bool { return h.before(h.of[i].sort, h.of[j].sort) }
func (h *places) Swap(i, j int)      { h.of[i], h.of[j] = h.of[j], h.of[i] }
func (h *places) Push(x any)         { h.of = append(h.of, x.(place)) }
func (h *places) Pop() any {
	last := h.of[len(h.of)-1]
	h.of = h.of[:len(h.of)-1]
	return last
}

// before tells whether a place goes out before another one.
func (h *places) before(a, b string) bool { return a != b && (a < b) == h.oldest }

// timeline is a listing of the runs of all jobs under way. Candidates come in any order and more than once, and go out in
// order and once; then they are read, and the filter looks at them as they stand.
type timeline struct {
	*Service
	tenant string
	filter RunFilter
	limit  int

	from, to string // bounds of the places, to exclusive; "" for none
	pending  places
	buckets  buckets
	batch    []run.ID // to be read next
	last     string   // the place that went out last
	seen     int
	runs     []run.Run
	read     run.ID // what was looked at last
	next     string
	full     bool
}

// timeline lists the runs of all jobs behind a run, the zero one for none.
//
// What the first sweep has passed is in the index; what it has not is found in the buckets, whose timers stand for it. The cursors
// of the sweeps are read first, so that what is swept meanwhile is found twice and not missed. Two kinds of states need no
// index: runs that have not ended all have a timer before the next regular check, or are listed as waiting, and what was given
// up is listed as dead letters.
func (s *Service) timeline(ctx context.Context, tenant string, f RunFilter, behind run.ID, limit int) ([]run.Run, string, error) {
	t := &timeline{Service: s, tenant: tenant, filter: f, limit: limit, pending: places{oldest: f.Oldest}}
	t.from, t.to = f.bounds()
	oldest, newest := int64(0), int64(0) // no run that is to be listed has an earlier or a later nominal time, 0 for no such bound
	if !f.From.IsZero() {
		oldest = max(0, f.From.UnixMilli())
	}
	if !f.To.IsZero() {
		newest = max(1, f.To.UnixMilli()-1)
	}
	switch {
	case behind.Job == "":
	case f.Oldest:
		t.from, oldest = max(t.from, behind.Place()+"\x00"), max(oldest, behind.Nominal)
	default:
		t.to = earlier(t.to, behind.Place())
		if newest == 0 || behind.Nominal < newest {
			newest = max(1, behind.Nominal)
		}
	}
	from := t.from
	switch {
	case only(f.States, run.Failed, run.Dead):
		if known, err := t.deadLetters(ctx); err != nil || known {
			if err == nil {
				err = t.finish(ctx)
			}
			return t.runs, t.next, err
		}
	case only(f.States, run.Scheduled, run.Queued, run.Waiting, run.Running, run.Retrying):
		t.buckets.unended = true
	}
	swept, err := t.open(ctx, oldest, newest)
	if err != nil {
		return nil, "", err
	}
	if t.buckets.unended && (slices.Contains(f.States, run.Retrying) || slices.Contains(f.States, run.Running)) { // a workflow's run may wait too
		if t.buckets.unended, err = t.waiting(ctx, swept); err != nil {
			return nil, "", err
		}
	}
	if t.buckets.unended {
		from = max(from, run.SortFrom(swept)) // of the index only what was asked for ahead of its time
	}
	to := ""
	if newest > 0 {
		to = run.IndexMinute(newest)
	}
	ranges := make([]store.Range, run.IndexSpread)
	for n := range ranges {
		ranges[n] = store.Range{Partition: run.IndexPartition(tenant, n), From: from, To: to, Backward: !f.Oldest, Limit: pageOf(limit, run.IndexSpread)}
	}
	err = s.merge(ctx, ranges, func(_ int, item store.Item) (bool, error) {
		ids, err := run.IndexFromItem(item)
		if err != nil {
			s.unreadable(tenant, item, err)
			return true, nil
		}
		if len(ids) == 0 {
			return true, nil
		}
		// No item to come holds what is newer than its own first: all that is pending down to there may go. The oldest first, an item
		// to come may hold whatever is of this minute or later.
		upTo := ids[0].Place()
		if f.Oldest {
			upTo = run.SortFrom(timer.Minute(ids[0].Nominal) * 60_000)
		}
		if err := t.letOut(ctx, upTo); err != nil || t.full {
			return false, err
		}
		t.add(ids...)
		return true, nil
	})
	if err == nil {
		err = t.finish(ctx)
	}
	return t.runs, t.next, err
}

// only tells whether a filter asks for some of these states and no others.
func only(asked []run.State, states ...run.State) bool {
	return len(asked) > 0 && !slices.ContainsFunc(asked, func(s run.State) bool { return !slices.Contains(states, s) })
}

// add takes candidates. One that should have gone out already is left to a listing that begins anew.
func (t *timeline) add(ids ...run.ID) {
	for _, id := range ids {
		p := place{id, id.Place()}
		if p.sort >= t.from && (t.to == "" || p.sort < t.to) && (t.last == "" || t.pending.before(t.last, p.sort)) {
			heap.Push(&t.pending, p)
		}
	}
}

// letOut lets out what is pending up to a place, "" for all. Of the newest first, what stands at the place goes out too.
func (t *timeline) letOut(ctx context.Context, upTo string) error {
	for !t.full {
		if err := t.reach(ctx, upTo); err != nil || t.full || !t.goesOut(upTo) {
			return err
		}
		p := heap.Pop(&t.pending).(place)
		if p.sort == t.last {
			continue
		}
		t.last = p.sort
		if len(t.batch) == t.batchSize() {
			if err := t.flush(ctx); err != nil {
				return err
			}
		}
		if t.full || len(t.runs) == t.limit || t.seen == examined {
			t.end(t.read)
			return nil
		}
		t.batch = append(t.batch, p.id)
	}
	return nil
}

// goesOut tells whether something is pending that goes out when all up to a place does.
func (t *timeline) goesOut(upTo string) bool {
	if len(t.pending.of) == 0 {
		return false
	}
	first := t.pending.of[0].sort
	if t.filter.Oldest {
		return upTo == "" || first < upTo
	}
	return first >= upTo
}

// end closes the page: the next one goes on behind an ID.
func (t *timeline) end(behind run.ID) {
	if !t.full {
		t.next, t.full = t.filter.After(behind), true
	}
}

// batchSize is how many runs are read at once: no more than the page needs, where every one is shown.
func (t *timeline) batchSize() int {
	if len(t.filter.States) > 0 || len(t.filter.Labels) > 0 || t.filter.Error != "" {
		return store.MaxKeys
	}
	return min(store.MaxKeys, max(1, t.limit-len(t.runs)))
}

// finish lets out all that is left.
func (t *timeline) finish(ctx context.Context) error {
	if err := t.letOut(ctx, ""); err != nil || t.full {
		return err
	}
	return t.flush(ctx)
}

// flush reads the runs of the batch and takes those that match.
func (t *timeline) flush(ctx context.Context) error {
	batch := make([]run.Run, len(t.batch))
	for i, id := range t.batch {
		batch[i] = run.Run{ID: id, Tenant: t.tenant}
	}
	t.batch = t.batch[:0]
	standing, err := t.Dispatch.ReadRuns(ctx, batch)
	if err != nil {
		return err
	}
	for _, r := range standing {
		if len(t.runs) == t.limit || t.seen == examined {
			t.end(t.read)
			return nil
		}
		t.seen++
		t.read = r.ID
		if r.Version == 0 || r.State == 0 { // listed and gone, or unreadable
			continue
		}
		match, err := t.matches(ctx, t.filter, r)
		if err != nil {
			return err
		}
		if match {
			t.runs = append(t.runs, r)
		}
	}
	return nil
}

// deadLetters takes the runs that are listed as dead letters, false where there are too many to be put in order.
func (t *timeline) deadLetters(ctx context.Context) (bool, error) {
	return t.listedIn(ctx, deadRanges(t.tenant, "", "", examined), func(item store.Item) ([]run.ID, error) {
		_, id, err := run.ParseDeadSort(item.Sort)
		return []run.ID{id}, err
	})
}

// waiting takes the runs whose wait for a retry, or for the time of a step, ends after an instant, false where there are too many to be put in order.
func (t *timeline) waiting(ctx context.Context, after int64) (bool, error) {
	all := store.Range{Partition: run.WaitingPartition(t.tenant), From: run.SortFrom(after)}
	return t.listedIn(ctx, []store.Range{all}, run.IndexFromItem)
}

func (t *timeline) listedIn(ctx context.Context, ranges []store.Range, read func(store.Item) ([]run.ID, error)) (bool, error) {
	var ids []run.ID
	err := t.merge(ctx, ranges, func(_ int, item store.Item) (bool, error) {
		some, err := read(item)
		if err != nil {
			t.unreadable(t.tenant, item, err)
			return true, nil
		}
		ids = append(ids, some...)
		return len(ids) <= examined, nil
	})
	if err != nil || len(ids) > examined {
		return false, err
	}
	t.add(ids...)
	return true, nil
}
