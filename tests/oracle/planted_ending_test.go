package oracle_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// ending is a life of a job whose schedule ends after so many fires, and that is edited meanwhile.
func ending(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.MaxRuns = 5
	r.put(tenant, "one", def)
	r.live(3*beat, beat)
	edited := works(2, every(2*beat))
	edited.MaxRuns = 5
	r.put(tenant, "one", edited)
	r.live(20*beat, beat)
	return r.end()
}

func TestNothingIsFoundWhereAScheduleEnds(t *testing.T) {
	l := ending(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	ends := map[int64]bool{}
	p := &plot{TB: t, life: l}
	for i := p.edition(first); ; i = p.edition(i + 1) {
		p.spoilJob(i, func(j *job.Job) { ends[j.Def.Schedule.CountedEnd] = true })
		if p.life[i].value != nil && p.description(i) == `{"edit":2}` {
			break
		}
	}
	if len(ends) != 1 || ends[0] {
		t.Errorf("it ends at %v", ends)
	}
}

// edition is the index of an event that puts the job.
func (p *plot) edition(from int) int {
	return p.put(from, "job", func(e event) bool { return e.key.Sort == "one" })
}

func (p *plot) description(at int) string {
	j, err := job.FromItem(tenant, "one", store.Item{Key: p.life[at].key, Version: 1, Value: p.life[at].value})
	if err != nil {
		p.Fatal(err)
	}
	return string(j.Def.Payload)
}

// endsAt moves the end that an edition has counted.
func endsAt(n int, by int64) func(p *plot) {
	return func(p *plot) {
		at := p.edition(first)
		for range n {
			at = p.edition(at + 1)
		}
		p.spoilJob(at, func(j *job.Job) { j.Def.Schedule.CountedEnd += by })
	}
}

var ofEndings = map[string]row{
	"one fire too many":          {endsAt(0, 4000), "P8: generation .* of job one of default has 5 fires and ends at .*, want"},
	"its last fire is lost":      {endsAt(0, -1), "P8: generation .* of job one of default has 5 fires and ends at .*, want"},
	"counted anew by other edit": {endsAt(1, 4000), "P8: generation .* of job one of default has 5 fires and ends at .*, want"},
}
