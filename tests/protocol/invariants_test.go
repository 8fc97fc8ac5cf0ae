package protocol_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

const forever = int64(1<<63 - 1)

// generation is one definition of a job, and the time in which its fires are in force: (from, until].
type generation struct {
	tenant, name string
	from, until  int64
	fires        job.Fires // nil: none
}

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

// timers gives all timers that stand, the first to wake first.
func (w *world) timers() []timer.Timer {
	var all []timer.Timer
	for _, item := range w.items("due#") {
		if t, err := timer.FromItem(item); err == nil {
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

// learn keeps the history of all jobs: what a job says of its past is dropped in time.
func (w *world) learn() {
	for _, item := range w.items("job#") {
		tenant := strings.Split(item.Partition, "#")[1]
		j := w.job(tenant, item.Sort)
		known := w.history[tenant+"#"+j.Name]
		if known == nil {
			known = map[int64]generation{}
			w.history[tenant+"#"+j.Name] = known
		}
		for _, past := range j.Past {
			g, seen := known[past.Generation]
			if !seen {
				edition, err := job.NewBook(w.store, w.compile).Edition(context.Background(), tenant, j.Name, past.Generation)
				w.must(err)
				g = w.generation(tenant, j.Name, edition.Def, past.Generation)
			}
			g.until = past.Until
			known[past.Generation] = g
		}
		if _, seen := known[j.Generation]; !seen {
			g := w.generation(tenant, j.Name, j.Def, j.Generation)
			g.until = forever
			known[j.Generation] = g
		}
	}
}

func (w *world) generation(tenant, name string, def job.Definition, number int64) generation {
	g := generation{tenant: tenant, name: name, from: number} // a first generation's number is its instant; others follow the one before
	if def.Schedule != nil && !def.Paused {
		var err error
		g.fires, err = w.compile(*def.Schedule)
		w.must(err)
	}
	return g
}

// check gives all that is wrong. After the calm, every fire up to upTo (Unix ms) that is in force must have its run, ended,
// or its record of being skipped.
func (w *world) check(upTo int64) []string {
	w.watch()
	w.learn()
	wrong := slices.Clone(w.shrunk)
	wrong = append(wrong, w.checkStarts()...)
	wrong = append(wrong, w.checkWakeups()...)
	for _, name := range slices.Sorted(maps.Keys(w.history)) {
		wrong = append(wrong, w.checkFires(w.history[name], upTo)...)
	}
	return wrong
}

// checkStarts: not early (P3), once (P2, P7), and none of an older definition after an edit's answer (P8).
func (w *world) checkStarts() (wrong []string) {
	count := map[string]int{}
	for _, s := range w.starts {
		name := s.tenant + "#" + s.id.String()
		count[name]++
		if count[name] == 2 {
			wrong = append(wrong, fmt.Sprintf("P2: %s started twice", show(s.id)))
		}
		if s.at < s.id.Nominal {
			wrong = append(wrong, fmt.Sprintf("P3: %s started early, at %s", show(s.id), clock(s.at)))
		}
		for _, e := range w.edits[:s.answered] {
			if e.tenant == s.tenant && e.job == s.id.Job && s.generation < e.generation && s.id.Nominal > e.at {
				wrong = append(wrong, fmt.Sprintf("P8: %s of generation %d started after the answer to the edit of %s",
					show(s.id), s.generation, clock(e.at)))
			}
		}
	}
	return wrong
}

// checkWakeups: every active job and every run that has not ended has a timer that a tick or sweep will come upon (P4).
func (w *world) checkWakeups() (wrong []string) {
	s := w.shard()
	behind := s.Oldest()
	runs, jobs := map[string]bool{}, map[string]bool{}
	for _, t := range w.timers() {
		if t.Wake <= behind {
			continue
		}
		switch t.Kind {
		case timer.Fire:
			jobs[fmt.Sprintf("%s#%s#%d", t.Tenant, t.Job, t.Generation)] = true
			for n := range w.fireRuns(t) {
				runs[n] = true
			}
		case timer.Request, timer.Check:
			runs[t.Tenant+"#"+t.Run.String()] = true
		}
	}
	for _, r := range w.runs() {
		if r.State != run.Fenced && !r.State.Ended() && !runs[r.Tenant+"#"+r.ID.String()] {
			wrong = append(wrong, fmt.Sprintf("P4: %s is %s, and nothing will wake it", show(r.ID), r.State))
		}
	}
	for _, item := range w.items("job#") {
		tenant := strings.Split(item.Partition, "#")[1]
		j := w.job(tenant, item.Sort)
		if !j.Active() {
			continue
		}
		fires, err := w.compile(*j.Def.Schedule)
		w.must(err)
		if _, ok := fires.Next(time.UnixMilli(max(s.Horizon, j.Updated))); ok && !jobs[fmt.Sprintf("%s#%s#%d", tenant, j.Name, j.Generation)] {
			wrong = append(wrong, fmt.Sprintf("P4: job %s is active and has no timer", j.Name))
		}
	}
	return wrong
}

// fireRuns names the runs of the fires that a timer stands for.
func (w *world) fireRuns(t timer.Timer) map[string]bool {
	names := map[string]bool{}
	g := w.history[t.Tenant+"#"+t.Job][t.Generation]
	for f, ok := t.Nominal, g.fires != nil; ok && f <= t.To; {
		names[t.Tenant+"#"+run.FireID(t.Job, f).String()] = true
		next, more := g.fires.Next(time.UnixMilli(f))
		f, ok = next.UnixMilli(), more && next.UnixMilli() > f
	}
	return names
}

// checkFires: each fire in force has one fate (P2).
func (w *world) checkFires(all map[int64]generation, upTo int64) (wrong []string) {
	skipped := map[int64]string{} // by fire: the decision that dropped it
	numbers := slices.Sorted(maps.Keys(all))
	if len(numbers) == 0 {
		return nil
	}
	first := all[numbers[0]]
	for _, r := range w.runs() {
		if r.Tenant != first.tenant || r.ID.Job != first.name || r.State != run.Skipped {
			continue
		}
		g := all[r.Generation]
		count := 0
		for f := r.ID.Nominal; g.fires != nil && f <= max(r.Through, r.ID.Nominal); count++ {
			if by := skipped[f]; by != "" {
				wrong = append(wrong, fmt.Sprintf("P2: %s was skipped twice, by %s and %s", clock(f), by, show(r.ID)))
			}
			skipped[f] = show(r.ID)
			next, ok := g.fires.Next(time.UnixMilli(f))
			if f = next.UnixMilli(); !ok {
				break
			}
		}
		if count != r.Count || r.Reason == "" {
			wrong = append(wrong, fmt.Sprintf("P2: %s counts %d skipped fires for %d, because %q", show(r.ID), r.Count, count, r.Reason))
		}
	}
	from := int64(0)
	for _, n := range numbers {
		g := all[n]
		if from == 0 {
			from = g.from
		}
		for f := from; g.fires != nil; {
			next, ok := g.fires.Next(time.UnixMilli(f))
			f = next.UnixMilli()
			if !ok || f > min(upTo, g.until) {
				break
			}
			r, found := w.run(g.tenant, run.FireID(g.name, f))
			ran := found && r.State != run.Fenced && r.State != run.Skipped
			switch {
			case ran && skipped[f] != "":
				wrong = append(wrong, fmt.Sprintf("P2: %s ran and was skipped, by %s", show(r.ID), skipped[f]))
			case !ran && skipped[f] == "":
				wrong = append(wrong, fmt.Sprintf("P2: %s of %s, generation %d, is lost: %s", show(run.FireID(g.name, f)), g.tenant, n, r.State))
			case ran && !r.State.Ended():
				wrong = append(wrong, fmt.Sprintf("P4: %s of %s is still %s", show(r.ID), g.tenant, r.State))
			}
		}
		from = g.until
	}
	for _, r := range w.runs() { // what was asked for
		if r.ID.OnDemand() && r.Tenant == first.tenant && r.ID.Job == first.name && r.ID.Nominal <= upTo && !r.State.Ended() &&
			!w.job(r.Tenant, r.ID.Job).Def.Paused {
			wrong = append(wrong, fmt.Sprintf("P4: %s of %s is still %s", show(r.ID), r.Tenant, r.State))
		}
	}
	return wrong
}

// clock shows an instant as the time since base.
func clock(ms int64) string {
	if ms == forever {
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
