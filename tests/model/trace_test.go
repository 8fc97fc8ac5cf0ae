package model_test

import (
	"fmt"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// The kinds of steps, as the mtype of protocol.pml has them; spin numbers them from the last.
var kinds = []string{"", "START", "ANSWER", "FENCE", "READX", "EDIT", "MOVE", "CHECK", "RUNS", "SEND", "CLAIM", "ARM", "GROW", "JOB", "LOOK", "READ", "PUBLISH"}

// row is a step as the model has it.
type row struct {
	now, who int
	kind     string
	a, b     int
}

func (r row) String() string {
	return fmt.Sprintf("at %d, process %d: %s %d %d", r.now, r.who, r.kind, r.a, r.b)
}

// worldProcess is the model's world, in which messages arrive.
const worldProcess = most + 3

// trace is what a world did, in the words of the model: what changed in the store, and what was read where the model reads.
type trace struct {
	*world
	rows        []row
	full        bool // the model has no further ticks, or no word for what was decided
	generations map[int64]int
	passes      int
	edits       int
	grown       map[store.Key]int // the row that last did it
	hinted      map[int64]bool    // fires of which a message was sent
}

// seen is what a process has done so far.
type seen struct {
	who     int
	lo, hi  int // of a pass: the timers that it is to read
	fires   bool
	job     int  // the row of its last JOB
	written bool // of an edit
	own     int
	out     int // the fires of which it has sent messages
}

func newTrace(w *world) *trace {
	return &trace{world: w, generations: map[int64]int{}, grown: map[store.Key]int{}, hinted: map[int64]bool{}}
}

func instant(ms int64) int { return int(max(0, (ms-origin.UnixMilli())/beat.Milliseconds())) }

func (t *trace) generation(g int64) int {
	if t.generations[g] == 0 {
		t.generations[g] = len(t.generations) + 1
	}
	return t.generations[g]
}

// pair is a fire of a generation, as a set of one.
func (t *trace) pair(generation, nominal int64) int {
	return 1 << ((t.generation(generation)-1)*instants + instant(nominal) - 1)
}

func (t *trace) add(who int, kind string, a, b int) {
	if !t.full {
		t.rows = append(t.rows, row{t.now, who, kind, a, b})
	}
}

// ours tells whether a bucket is the job's.
func (t *trace) ours(partition string) bool {
	return t == nil || partition == timer.Partition(timer.Minute(origin.UnixMilli()), timer.BucketOf(tenant, name))
}

// read notes that a process has read the job, or the shard.
func (t *trace) read(p *process, items []store.Item) {
	if p == nil || len(items) != 1 { // a definition is looked for in two places; it never changes
		return
	}
	s := &p.seen
	for _, item := range items {
		switch kind, _, _ := strings.Cut(item.Partition, "#"); {
		case kind == "job" && (p.edits || s.fires):
			j, err := job.FromItem(tenant, name, item)
			t.must(err)
			if p.edits && s.who == 0 {
				t.edits++
				s.who = most + t.edits
			}
			s.fires = false
			s.job = len(t.rows)
			at := 0
			if p.edits && !s.written {
				at = -1 // its instant, which shows when it writes
			}
			t.add(s.who, "JOB", t.generation(j.Generation), at)
		case kind == "shard" && s.written:
			shard, err := timer.ShardFromItem(0, item)
			t.must(err)
			t.add(s.who, "READX", instant(shard.Horizon), 0)
		}
	}
}

// looked notes that a pass has read the timers of the job.
func (t *trace) looked(p *process, page store.Page) {
	if p == nil || p.edits || p.seen.lo >= p.seen.hi {
		return
	}
	mine := 0
	for _, item := range page.Items {
		if tm, err := timer.FromItem(item); err == nil && tm.Kind == timer.Fire {
			mine |= t.pair(tm.Generation, tm.Nominal)
		}
	}
	p.seen.fires = mine != 0
	t.add(p.seen.who, "READ", mine, 0)
}

// sent notes a message that may start something.
func (t *trace) sent(p *process, m queue.Outgoing) {
	message, err := run.DecodeMessage(m.Body)
	t.must(err)
	items, err := t.store.Get(t.Context(), message.Run.ID.Key(tenant))
	t.must(err)
	r, ok, err := run.FromItem(tenant, message.Run.ID, items[0])
	t.must(err)
	// Two timers may stand for a fire: its second message is as one that the queue has doubled. A message of a claim that has been overtaken
	// is a hint at the other one.
	sent := message.Run
	stands := r.State == run.Queued && r.Version == sent.Version
	overtaken := (r.State == run.Queued || r.State == run.Fenced) && r.Generation > sent.Generation && !t.hinted[sent.ID.Nominal]
	bit := t.pair(sent.Generation, sent.ID.Nominal)
	if p == nil || !ok || !stands && !overtaken || p.seen.out&bit != 0 {
		return
	}
	t.hinted[sent.ID.Nominal] = true
	p.seen.out |= bit
	t.add(p.seen.who, "SEND", bit, 0)
}

// wrote notes what a write has changed.
func (t *trace) wrote(p *process, before []store.Item, ops []store.Op, failed error) {
	if t == nil {
		return
	}
	for i, op := range ops {
		if kind, _, _ := strings.Cut(op.Key.Partition, "#"); kind == "job" {
			t.edited(p, op, failed)
			return // with its first timer
		} else if kind == "due" {
			t.armed(p, before[i], op, failed)
		} else if kind == "shard" && failed == nil {
			t.moved(p, before[i], op)
		} else if kind == "run" && failed == nil {
			t.changed(p, before[i], op)
		}
	}
}

func (t *trace) edited(p *process, op store.Op, failed error) {
	j, err := job.FromItem(tenant, name, store.Item{Key: op.Key, Version: 1, Value: op.Value})
	t.must(err)
	s, at := &p.seen, instant(j.Updated)
	if s.job < len(t.rows) {
		t.rows[s.job].b = at
	}
	schedule := 0
	for i := 1; i <= instants && !j.Def.Paused; i++ {
		if every := int(j.Def.Schedule.Every.Std() / beat); i%every == 0 {
			schedule |= 1 << (i - 1)
		}
	}
	t.add(s.who, "EDIT", t.generation(j.Past[len(j.Past)-1].Generation), schedule<<8|at)
	if failed == nil {
		s.own, s.written = t.generation(j.Generation), true
	}
}

func (t *trace) armed(p *process, before store.Item, op store.Op, failed error) {
	tm, err := timer.FromItem(store.Item{Key: op.Key, Version: 1, Value: op.Value})
	t.must(err)
	s := &p.seen
	switch bit := t.pair(tm.Generation, tm.Nominal); {
	case tm.Kind != timer.Fire:
		t.Fatalf("a timer that the model has not: %s", op.Key)
	case failed == nil && before.Exists():
		t.grown[op.Key] = len(t.rows)
		t.add(s.who, "GROW", bit, 0)
	case failed == nil:
		t.add(s.who, "ARM", bit, 0)
	case before.Exists() && tm.To > tm.Nominal && !p.edits:
		// It found written what another has written since it planned; for the model that is a write too.
		standing, err := timer.FromItem(before)
		t.must(err)
		if at, ok := t.grown[op.Key]; ok && at > s.job && standing.To >= tm.To {
			t.add(s.who, "GROW", bit, 0)
		}
	}
}

func (t *trace) moved(p *process, before store.Item, op store.Op) {
	old, err := timer.ShardFromItem(0, before)
	t.must(err)
	shard, err := timer.ShardFromItem(0, store.Item{Key: op.Key, Version: 1, Value: op.Value})
	t.must(err)
	s := &p.seen
	if shard.Epoch == old.Epoch {
		t.add(s.who, "MOVE", instant(shard.Watermark), instant(shard.Swept[0]))
		p.of.left = 0
		return
	}
	if shard.Watermark != old.Watermark { // where its last pass had come to
		t.add(p.of.left, "MOVE", instant(shard.Watermark), instant(shard.Swept[0]))
	}
	if t.passes++; t.passes > most {
		t.full = true
	}
	*s = seen{who: t.passes, lo: instant(shard.Watermark), hi: min(instant(shard.Horizon), instant(shard.Passed)+2)}
	p.of.left = s.who
	t.add(s.who, "PUBLISH", instant(shard.Horizon), instant(shard.Passed))
}

func (t *trace) changed(p *process, before store.Item, op store.Op) {
	id, err := run.IDFromSort(name, op.Key.Sort)
	t.must(err)
	old, _, err := run.FromItem(tenant, id, before)
	t.must(err)
	r, _, err := run.FromItem(tenant, id, store.Item{Key: op.Key, Version: 1, Value: op.Value})
	t.must(err)
	switch bit := t.pair(r.Generation, id.Nominal); {
	case r.State == run.Running && old.State == run.Queued:
		t.add(worldProcess, "START", bit, 0)
	case r.State == run.Skipped, r.State == run.Queued && r.NextAt != 0:
		t.full = true // a fire was missed: nothing is, in the model
	case r.State == run.Queued:
		t.add(p.seen.who, "CLAIM", bit, 0)
	case r.State == run.Fenced:
		t.add(p.seen.who, "FENCE", bit, 0)
	}
}

// ended notes that an edit was answered.
func (t *trace) ended(p *process) {
	if p.edits && p.failed == nil {
		t.add(p.seen.who, "ANSWER", p.seen.own, 0)
	}
}
