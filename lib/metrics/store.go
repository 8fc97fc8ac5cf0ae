package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

const (
	opGet       = "get"
	opPeek      = "peek"
	opQuery     = "query"
	opWrite     = "write"
	opWriteEach = "write_each"

	resultOK        = "ok"
	resultConflict  = "conflict"
	resultThrottled = "throttled"
	resultUnknown   = "unknown"
	resultError     = "error"

	throttledStore = "store"
)

// Store gives a store whose calls are measured. A WriteEach counts as the worst of its verdicts: unknown, error, throttled,
// conflict, ok; each throttled op of it counts as a refusal.
func Store(s store.Store, r *Registry, now func() time.Time) store.Store {
	return &measured{Store: s, r: r, now: now}
}

type measured struct {
	store.Store
	r   *Registry
	now func() time.Time
}

func (m *measured) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	start := m.now()
	items, err := m.Store.Get(ctx, keys...)
	m.done(opGet, start, err)
	return items, err
}

func (m *measured) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	start := m.now()
	items, err := m.Store.Peek(ctx, keys...)
	m.done(opPeek, start, err)
	return items, err
}

func (m *measured) Query(ctx context.Context, r store.Range) (store.Page, error) {
	start := m.now()
	page, err := m.Store.Query(ctx, r)
	m.done(opQuery, start, err)
	return page, err
}

func (m *measured) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	start := m.now()
	versions, err := m.Store.Write(ctx, ops...)
	m.done(opWrite, start, err)
	return versions, err
}

func (m *measured) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	start := m.now()
	verdicts, err := m.Store.WriteEach(ctx, ops...)
	worst := m.refused(err)
	for _, v := range verdicts {
		if result := m.refused(v.Err); severity(result) > severity(worst) {
			worst = result
		}
	}
	m.r.Store.Observe(m.now().Sub(start), opWriteEach, worst)
	return verdicts, err
}

func (m *measured) done(op string, start time.Time, err error) {
	m.r.Store.Observe(m.now().Sub(start), op, m.refused(err))
}

// refused names the result, and counts it where it is a refusal for load.
func (m *measured) refused(err error) string {
	result := resultOf(err)
	if result == resultThrottled {
		m.r.Throttled.Inc(throttledStore)
	}
	return result
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return resultOK
	case store.AsConflict(err) != nil:
		return resultConflict
	case errors.Is(err, store.ErrThrottled):
		return resultThrottled
	case errors.Is(err, store.ErrUnknown):
		return resultUnknown
	default:
		return resultError
	}
}

func severity(result string) int {
	switch result {
	case resultOK:
		return 0
	case resultConflict:
		return 1
	case resultThrottled:
		return 2
	case resultError:
		return 3
	default:
		return 4
	}
}
