package protocol_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func (w *world) get(k store.Key) store.Item {
	items, err := w.store.Get(context.Background(), k)
	w.must(err)
	return items[0]
}

func (w *world) run(tenant string, id run.ID) (run.Run, bool) {
	r, ok, err := run.FromItem(tenant, id, w.get(id.Key(tenant)))
	w.must(err)
	return r, ok
}

func (w *world) job(tenant, name string) job.Job {
	j, err := job.FromItem(tenant, name, w.get(job.Key(tenant, name)))
	w.must(err)
	return j
}

func (w *world) shard() timer.Shard {
	s, err := timer.ShardFromItem(0, w.get(timer.ShardKey(0)))
	w.must(err)
	return s
}

// timers gives all timers that stand, the first to wake first; those of a batch each for itself.
func (w *world) timers() []timer.Timer {
	var all []timer.Timer
	for _, item := range w.items("due#") {
		switch t, err := timer.FromItem(item); {
		case err != nil:
		case t.Kind == timer.Batch:
			all = append(all, t.AppendSingles(nil)...)
		default:
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b timer.Timer) int { return int(a.Wake - b.Wake) })
	return all
}

// runs gives all runs that stand, fences included, by tenant, job and nominal time.
func (w *world) runs() []run.Run {
	var all []run.Run
	for _, item := range w.items("run#") {
		parts := strings.Split(item.Partition, "#")
		id, err := run.IDFromSort(parts[2], item.Sort)
		w.must(err)
		if r, _, err := run.FromItem(parts[1], id, item); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// check gives all that is wrong. After the calm, every fire up to upTo (Unix ms) that is in force must have its run, ended,
// or its record of being skipped.
func (w *world) check(upTo int64) []string {
	w.judging.Lock()
	defer w.judging.Unlock()
	owed := w.judge.Owed(w.clock(), time.UnixMilli(upTo), slices.Values(w.items("")))
	return append(slices.Clone(w.judge.Violations()), owed...)
}

// clock shows an instant as the time since base.
func clock(ms int64) string {
	if ms == math.MaxInt64 {
		return "never"
	}
	d := time.UnixMilli(ms).Sub(base)
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	text := fmt.Sprintf("%s%02d:%02d:%02d", sign, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60)
	if days := int(d.Hours()) / 24; days > 0 {
		text = fmt.Sprintf("%s%dd+%s", sign, days, strings.TrimPrefix(text, sign))
	}
	if ms := d.Milliseconds() % 1000; ms != 0 {
		text += fmt.Sprintf(".%03d", ms)
	}
	return text
}

func show(id run.ID) string {
	text := id.Job + "@" + clock(id.Nominal)
	if id.OnDemand() {
		text += "~" + strings.TrimLeft(id.Random, "0")
	}
	return text
}
