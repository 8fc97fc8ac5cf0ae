package protocol_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// describe says what an operation does, in the words of the protocol, and whether it will be refused.
func (p *player) describe(op operation) string {
	var parts []string
	switch {
	case op.sent != nil:
		m, err := run.DecodeMessage(op.sent.Body)
		p.must(err)
		text := "send " + p.id(m.Run.ID)
		if op.sent.Delay > 0 {
			text += " in " + op.sent.Delay.String()
		}
		if p.lose > 0 {
			text += ", which the queue loses"
		}
		return text
	case op.call.Method == faulty.Query:
		return "query " + p.place(store.Key{Partition: op.call.Range.Partition})
	case len(op.call.Keys) > 0:
		for _, k := range op.call.Keys {
			parts = append(parts, p.place(k))
		}
		return "read " + strings.Join(parts, " and ")
	}
	stands := ""
	for _, o := range op.call.Ops {
		item := store.Item{Key: o.Key, Value: o.Value}
		standing := p.get(o.Key)
		switch {
		case o.If.Holds(standing.Version):
		case standing.Attempt == o.Attempt:
			stands = ": stands by the try before"
		default:
			stands = ": overtaken"
			if o.If.IsAbsent() {
				stands = ": something stands"
			}
		}
		item.Version = standing.Version + 1
		parts = append(parts, p.item(item))
	}
	return strings.Join(parts, " + ") + stands
}

// place names where an item stands.
func (p *player) place(k store.Key) string {
	parts := strings.Split(k.Partition, "#")
	switch parts[0] {
	case "shard":
		return "shard"
	case "job":
		return "job " + k.Sort
	case "def":
		n, err := strconv.ParseInt(k.Sort, 10, 64)
		p.must(err)
		return fmt.Sprintf("definition %s of %s", generationOf(n), parts[2])
	case "run":
		if k.Sort == "" {
			return "the runs of " + parts[2]
		}
		id, err := run.IDFromSort(parts[2], k.Sort)
		p.must(err)
		return "run " + p.id(id)
	case "due":
		minute, err := strconv.ParseInt(parts[1], 10, 64)
		p.must(err)
		if k.Sort == "" {
			return "a bucket of " + clock(minute * 60_000)[:5]
		}
		return "a timer of " + clock(minute * 60_000)[:5]
	case "swept":
		minute, err := strconv.ParseInt(k.Sort, 10, 64)
		p.must(err)
		return "swept " + clock(minute * 60_000)[:5]
	case "idem":
		return "key " + parts[2]
	case "ran":
		return "index"
	case "gate":
		return "gate " + parts[2]
	case "line":
		if k.Sort == "" || !strings.Contains(k.Sort, "#0") {
			return "the line of " + parts[2]
		}
		at, err := gate.PlaceFromItem(parts[2], store.Item{Key: k})
		p.must(err)
		return "place in line of " + p.id(at.Run)
	}
	p.t.Fatalf("no word for %s", k)
	return ""
}

// item shows one as it is written.
func (p *player) item(item store.Item) string {
	parts := strings.Split(item.Partition, "#")
	switch parts[0] {
	case "shard":
		s, err := timer.ShardFromItem(0, item)
		p.must(err)
		return "shard " + p.shard(s)
	case "due":
		t, err := timer.FromItem(item)
		p.must(err)
		return p.timer(t)
	case "run":
		id, err := run.IDFromSort(parts[2], item.Sort)
		p.must(err)
		r, _, err := run.FromItem(parts[1], id, item)
		p.must(err)
		return p.run(r)
	case "ran":
		ids, err := run.IndexFromItem(item)
		p.must(err)
		text := "index"
		for _, id := range ids {
			text += " " + p.id(id)
		}
		return text
	case "gate":
		g, err := gate.FromItem(parts[1], parts[2], item)
		p.must(err)
		text := "gate " + parts[2] + " holds"
		for _, e := range g.Entries {
			text += " " + p.id(g.Run(e))
			if e.Opening != 0 {
				text += fmt.Sprintf("(opened in %d)", e.Opening)
			}
		}
		if g.Waiting > 0 {
			text += fmt.Sprintf(", %d wait", g.Waiting)
		}
		return text
	case "job":
		j, err := job.FromItem(parts[1], item.Sort, item)
		p.must(err)
		text := fmt.Sprintf("job %s generation=%s", j.Name, generationOf(j.Generation))
		switch {
		case j.Deleted:
			text += " deleted"
		case j.Def.Paused:
			text += " paused"
		}
		for _, past := range j.Past {
			text += fmt.Sprintf(" past=%s,until=%s", generationOf(past.Generation), clock(past.Until))
		}
		return text
	}
	return p.place(item.Key)
}

func (p *player) shard(s timer.Shard) string {
	return fmt.Sprintf("epoch=%d X=%s W=%s S1=%s S2=%s S3=%s", s.Epoch, clock(s.Horizon), clock(s.Watermark),
		clock(s.Swept[0]), clock(s.Swept[1]), clock(s.Swept[2]))
}

func (p *player) timer(t timer.Timer) string {
	var text string
	switch t.Kind {
	case timer.Fire:
		text = fmt.Sprintf("fire timer %s@%s generation=%s", t.Job, clock(t.Nominal), generationOf(t.Generation))
		if t.To > t.Nominal {
			text += " to=" + clock(t.To)
		}
		if t.Owed != 0 {
			text += " owed=" + clock(t.Owed)
		}
	case timer.Request:
		text = "request timer " + p.id(t.Run)
		if t.Direct {
			text += " direct"
		}
	case timer.Batch:
		text = "request timer"
		for _, one := range t.AppendSingles(nil) {
			text += " " + p.id(one.Run)
		}
		if t.Direct {
			text += " direct"
		}
	case timer.Check:
		text = "check timer " + p.id(t.Run)
	}
	if t.Wake != t.Nominal {
		text += " wake=" + clock(t.Wake)
	}
	return text
}

func (p *player) run(r run.Run) string {
	text := fmt.Sprintf("run %s %s generation=%s", p.id(r.ID), r.State, generationOf(r.Generation))
	if r.State == run.Fenced {
		text = fmt.Sprintf("fence %s generation=%s", p.id(r.ID), generationOf(r.Generation))
	}
	if r.Count > 0 {
		text += fmt.Sprintf(" through=%s count=%d", clock(r.Through), r.Count)
	}
	if r.Reason != "" {
		text += fmt.Sprintf(" %q", r.Reason)
	}
	for _, other := range r.Why.InTheWay {
		id, err := run.ParseID(other)
		p.must(err)
		text += " for " + p.id(id)
	}
	return text
}

// named is the run that is shown as this.
func (p *player) named(text string) run.ID {
	for _, r := range p.world.runs() {
		if p.id(r.ID) == text {
			return r.ID
		}
	}
	p.t.Fatalf("there is no run %s", text)
	return run.ID{}
}

// id shows a run's name; the random part of one on demand by the order of its appearance.
func (p *player) id(id run.ID) string {
	text := id.Job + "@" + clock(id.Nominal)
	if !id.OnDemand() {
		return text
	}
	i := slices.Index(p.requested, id.Random)
	if i < 0 {
		i = len(p.requested)
		p.requested = append(p.requested, id.Random)
	}
	return fmt.Sprintf("%s/%d", text, i+1)
}

// generationOf shows a generation by its number, which is a time: no two of a job have the same.
func generationOf(n int64) string {
	if n == 0 {
		return "none"
	}
	return clock(n)
}
