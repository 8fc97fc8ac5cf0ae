package oracle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// told has an answer be another.
func told(op oracle.Op, change func(a *oracle.Answer), is ...func(q oracle.Request, a oracle.Answer) bool) func(p *plot) {
	return func(p *plot) { p.tells(first, op, change, is...) }
}

func refused(code string) func(a *oracle.Answer) {
	return func(a *oracle.Answer) { *a = oracle.Answer{At: a.At, Status: 409, Code: code} }
}

// asks changes a request.
func (p *plot) asks(op oracle.Op, change func(q *oracle.Request), is ...func(q oracle.Request, a oracle.Answer) bool) {
	i, _ := p.answer(first, op, is...)
	q := *p.life[i].asked
	change(&q)
	p.life[i].asked = &q
}

func edit2(q oracle.Request, _ oracle.Answer) bool {
	return q.Job == "plain" && strings.Contains(string(q.Def.Payload), "2")
}

// and adds a request and its answer before the end.
func (p *plot) and(q oracle.Request, a oracle.Answer) {
	at := p.life[p.end()].at
	q.At, a.At = at, at
	if q.Tenant == "" {
		q.Tenant = tenant
	}
	p.insert(p.end(), event{asked: &q, question: 1000}, event{answered: &a, question: 1000})
}

var ofAnswers = map[string]row{
	"refused for load, without a time": {told(oracle.GetRun, func(a *oracle.Answer) { *a = oracle.Answer{At: a.At, Status: 429, Code: "busy"} }), "P11: GET run .* was refused for load"},
	"an edit that was not made": {func(p *plot) {
		p.asks(oracle.PutJob, func(q *oracle.Request) { def := *q.Def; def.Description = "other"; q.Def = &def })
	}, "P1: PUT job of plain of default was answered with 200, and no such generation stood"},
	"made where there was one":        {func(p *plot) { p.asks(oracle.PutJob, func(q *oracle.Request) { q.Absent = true }, edit2) }, "P1: job plain of default was to be made where there is none"},
	"replaced another than was named": {func(p *plot) { p.asks(oracle.PutJob, func(q *oracle.Request) { q.Match = `"g1"` }, edit2) }, "P1: job plain of default was to replace"},
	"no such job, for an edit":        {told(oracle.PauseJob, refused("job_not_found")), "P1: pause: there is no job plain of default, it was told"},
	"a PUT refused that stands":       {told(oracle.PutJob, refused("precondition_failed"), edit2), "P9: PUT of plain of default was refused"},
	"a job without its generation":    {told(oracle.GetJob, func(a *oracle.Answer) { a.Job = &wire.Job{} }), "P1: GET job: job plain of default is shown without its generation"},
	"a generation that never was": {told(oracle.GetJob, func(a *oracle.Answer) {
		j := *a.Job
		j.Status = &wire.JobStatus{Generation: 5}
		a.Job = &j
	}), "P1: GET job: job plain of default is shown in generation 5, which never was"},
	"a generation of before": {func(p *plot) {
		_, i := p.answer(first, oracle.PutJob)
		before := p.life[i].answered.Job
		p.tells(first, oracle.GetJob, func(a *oracle.Answer) { a.Job = before })
	}, "P1: GET job: job plain of default is shown in generation .*, which did not stand then"},
	"a job as it is not":       {told(oracle.GetJob, func(a *oracle.Answer) { j := *a.Job; j.Description = "x"; a.Job = &j }), "P1: GET job: generation .* of job plain of default is shown as what it is not"},
	"no such job":              {told(oracle.GetJob, refused("job_not_found")), "P1: there is no job plain of default, it was told"},
	"no such job, for a run":   {told(oracle.Trigger, refused("job_not_found")), "P1: there is no job asked of default, it was told"},
	"a key that nobody reused": {told(oracle.Trigger, refused("idempotency_key_reused"), func(q oracle.Request, _ oracle.Answer) bool { return q.Job == "fails" }), "P9: key .* was refused as used for another request, and there was none"},
	"a key refused for the same": {func(p *plot) {
		p.and(oracle.Request{Op: oracle.Trigger, Job: "asked", Key: "key", Body: `{"a":1}`}, oracle.Answer{Status: 409, Code: "idempotency_key_reused"})
	}, "P9: key key of default was refused as used for another request, and had given run"},
	"its policy is lost": {func(p *plot) { p.asks(oracle.Trigger, func(q *oracle.Request) { q.Own = "allow" }) }, "G4: run asked.* of default was asked for with the policy \"allow\", and goes by \"\""},
	"another job's run":  {func(p *plot) { p.asks(oracle.Trigger, func(q *oracle.Request) { q.Job = "fails" }) }, "P12: a run of fails of default was asked for, and asked.* was given"},
	"one run for two requests": {func(p *plot) {
		_, i := p.answer(first, oracle.Trigger, func(q oracle.Request, _ oracle.Answer) bool { return q.Job == "fails" })
		a := *p.life[i].answered
		id := *a.Run
		a.Run = p.lastShown(id.ID)
		q := oracle.Request{Op: oracle.Trigger, Job: "fails", Body: "another"}
		p.and(q, a)
	}, "P9: run .* was given for two requests"},
	"a key's run for another request": {func(p *plot) {
		_, i := p.answer(first, oracle.Trigger)
		a := *p.life[i].answered
		a.Run = p.lastShown(a.Run.ID)
		p.and(oracle.Request{Op: oracle.Trigger, Job: "asked", Key: "second", Body: "x"}, a)
	}, `P9: run .* was given for key "second", and for another request`},
	"a key that gives for another body": {func(p *plot) {
		_, i := p.answer(first, oracle.Trigger)
		a := *p.life[i].answered
		a.Run = p.lastShown(a.Run.ID)
		p.and(oracle.Request{Op: oracle.Trigger, Job: "asked", Key: "key", Body: "x"}, a)
	}, "P9: key key of default gave run"},
	"another payload than was given": {func(p *plot) { p.asks(oracle.Trigger, func(q *oracle.Request) { q.Given = []byte(`{"a":3}`) }) }, "P1: run asked.* was asked for with"},
	"due at another time":            {func(p *plot) { p.asks(oracle.Trigger, func(q *oracle.Request) { q.Due = q.At.Add(time.Hour) }) }, "P3: run asked.* was asked for at .*, and is due at"},
	"a run that is nobody's":         {told(oracle.GetRun, func(a *oracle.Answer) { r := *a.Run; r.ID = run.FireID("none", 5).String(); a.Run = &r }), "P1: GET run: run none.* is shown to default, and there is none"},
	"another tenant's run": {func(p *plot) {
		_, i := p.answer(first, oracle.GetRun)
		a := *p.life[i].answered
		p.and(oracle.Request{Op: oracle.GetRun, Tenant: other, Run: a.Run.ID}, a)
	}, "P12: GET run: run asked.* is shown to acme, and there is none"},
	"a run as it was before": {func(p *plot) {
		_, i := p.answer(first, oracle.Trigger)
		before := p.life[i].answered.Run
		p.tells(first, oracle.GetRun, func(a *oracle.Answer) { a.Run = before })
	}, "P1: GET run: run asked.* is shown as queued"},
	"no such run": {told(oracle.GetRun, refused("run_not_found")), "P1: GET run: there is no run asked.* it was told"},
	"not cancelled": {func(p *plot) {
		_, i := p.answer(first, oracle.Trigger)
		id := p.life[i].answered.Run.ID
		p.and(oracle.Request{Op: oracle.Cancel, Run: id}, oracle.Answer{Status: 200})
	}, "P1: run asked.* was told to be cancelled, and is not"},
	"not ended": {func(p *plot) {
		i, answered := p.answer(first, oracle.Trigger)
		id := p.life[answered].answered.Run.ID
		at := p.run(i, "asked", run.Queued)
		q, a := oracle.Request{At: p.life[at].at, Op: oracle.Cancel, Tenant: tenant, Run: id}, oracle.Answer{At: p.life[at].at, Status: 409, Code: "run_ended"}
		p.insert(at+1, event{asked: &q, question: 1000}, event{answered: &a, question: 1000})
	}, "P1: run asked.* was told to have ended, and had not"},
	"opened again, told of none": {func(p *plot) {
		p.and(oracle.Request{Op: oracle.Redrive}, oracle.Answer{Status: 200, Reopened: []string{run.FireID("none", 5).String()}})
	}, "P12: run none.* was opened again, it was told, and there is none"},
	"discarded, told of none": {func(p *plot) {
		p.and(oracle.Request{Op: oracle.Discard}, oracle.Answer{Status: 200, Discarded: []string{run.FireID("none", 5).String()}})
	}, "P12: run none.* was discarded, it was told, and there is none"},
	"not discarded": {func(p *plot) {
		_, i := p.answer(first, oracle.Trigger)
		p.and(oracle.Request{Op: oracle.Discard}, oracle.Answer{Status: 200, Discarded: []string{p.life[i].answered.Run.ID}})
	}, "P1: run asked.* was told to be discarded, and was not"},
	"a letter that was discarded is listed": {func(p *plot) {
		r, _ := p.of(p.life[p.discarded()])
		p.and(oracle.Request{Op: oracle.DeadLetters}, oracle.Answer{Status: 200, Letters: []wire.DeadLetter{{ID: r.ID.String(), Job: "fails", State: "dead", EndedAt: time.UnixMilli(r.Ended)}}})
	}, "P1: dead letters of default: fails.* is listed as dead since .*, and was not"},
	"not opened again": {func(p *plot) {
		asked, _ := p.answer(first, oracle.Retry)
		p.and(oracle.Request{Op: oracle.Retry, Run: p.life[asked].asked.Run}, oracle.Answer{Status: 200})
	}, "P1: run fails.* was told to be opened again, and was not"},
	"accepted, and not there": {func(p *plot) {
		// The store gives up the run of a key when it is old, and nobody is told.
		_, i := p.answer(first, oracle.Trigger)
		id, err := run.ParseID(p.life[i].answered.Run.ID)
		if err != nil {
			p.Fatal(err)
		}
		p.insert(p.end(), p.item(run.Run{ID: id, Tenant: tenant, State: run.Fenced, Generation: 1, Expires: 1}))
	}, "P1: run asked.* of default was accepted, and is not there"},
}

// lastShown is a run as it stands at the end.
func (p *plot) lastShown(id string) *wire.Run {
	var last *wire.Run
	for _, e := range p.life {
		if r, ok := p.of(e); ok && r.ID.String() == id && r.Tenant == tenant {
			last = shownRun(r)
		}
	}
	return last
}

func dropped[T any](all []T, at int) []T { return slices.Delete(slices.Clone(all), at, at+1) }

func twice[T any](all []T) []T { return append(slices.Clone(all), all[0]) }

var ofLists = map[string]row{
	"a job is listed twice": {told(oracle.ListJobs, func(a *oracle.Answer) { a.Jobs = twice(a.Jobs) }), "P1: jobs of default: one is listed twice"},
	"a job of nobody's": {told(oracle.ListJobs, func(a *oracle.Answer) {
		a.Jobs = append(slices.Clone(a.Jobs), wire.Job{Name: "x", Status: &wire.JobStatus{}})
	}), "P12: jobs of default: x is listed, and is none of theirs"},
	"a job is not listed":      {told(oracle.ListJobs, func(a *oracle.Answer) { a.Jobs = dropped(a.Jobs, 1) }), "P1: jobs of default: .* stood all the time, and is not listed"},
	"a run is listed twice":    {told(oracle.ListRuns, func(a *oracle.Answer) { a.Runs = twice(a.Runs) }), "P1: runs of default: .* is listed twice"},
	"a run is not listed":      {told(oracle.ListRuns, func(a *oracle.Answer) { a.Runs = dropped(a.Runs, 3) }), "P1: runs of default: .* stood all the time as was asked for, and is not listed"},
	"runs in a wrong order":    {told(oracle.ListRuns, func(a *oracle.Answer) { a.Runs = slices.Clone(a.Runs); slices.Reverse(a.Runs) }), "P1: runs of default: .* is listed behind an older one"},
	"not what was asked for":   {func(p *plot) { p.asks(oracle.ListRuns, func(q *oracle.Request) { q.Job = "plain" }) }, "P12: runs of default: .* is listed as .*, and was not asked for"},
	"a letter is listed twice": {told(oracle.DeadLetters, func(a *oracle.Answer) { a.Letters = twice(a.Letters) }), "P1: dead letters of default: .* is listed twice"},
	"a letter of nobody's":     {told(oracle.DeadLetters, func(a *oracle.Answer) { a.Letters = slices.Clone(a.Letters); a.Letters[0].ID = "x" }), "P12: dead letters of default: x is listed, and is none of theirs"},
	"a letter is not listed":   {told(oracle.DeadLetters, func(a *oracle.Answer) { a.Letters = dropped(a.Letters, 0) }), "P1: dead letters of default: .* had failed all the time, and is not listed"},
	"a letter of another end":  {told(oracle.DeadLetters, func(a *oracle.Answer) { a.Letters = slices.Clone(a.Letters); a.Letters[0].EndedAt = base }), "P1: dead letters of default: .* is listed as .* since .*, and was not"},
}

// fires is a schedule of each so many seconds.
func fires(t testing.TB, seconds int) job.Fires {
	compiled, err := job.Compile(schedule.Spec{Every: schedule.Duration(time.Duration(seconds) * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// matched plants in what is matched: a definition that fires each second from 10 s to 13 s, and one of each two seconds from there.
func matched(t *testing.T) map[string][]string {
	ran := func(at, generation int64) oracle.Fate {
		return oracle.Fate{Run: "run", Nominal: at * 1000, Generation: generation}
	}
	skipped := func(at, through int64, count int) oracle.Fate {
		return oracle.Fate{Run: "skip", Nominal: at * 1000, Generation: 1, Skipped: true, Through: through * 1000, Count: count, Reason: "missed", Began: at, Written: at}
	}
	atOnce := func(f oracle.Fate) oracle.Fate { f.Began, f.Written = 1, 100; return f }
	unexplained := skipped(11, 12, 2)
	unexplained.Reason = ""
	reigns := []oracle.Reign{{Generation: 1, Fires: fires(t, 1), From: 10_000, Until: 13_000, Answered: 14_000}, {Generation: 2, Fires: fires(t, 2), From: 13_000, Until: 17_500}}
	all := map[string][]string{}
	for name, r := range map[string]struct {
		fates []oracle.Fate
		want  string
	}{
		"well":                   {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 2), ran(16, 2)}, ""},
		"an old one had started": {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 1), ran(16, 2)}, ""},
		"some dropped":           {[]oracle.Fate{skipped(11, 12, 2), ran(13, 1), ran(14, 2), ran(16, 2)}, ""},
		"an old one had started, and the new one's is dropped": {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 1),
			{Run: "skip", Nominal: 14_000, Generation: 2, Skipped: true, Through: 14_000, Count: 1, Reason: "missed"}, ran(16, 2)}, ""},
		"dropped beyond the edit":   {[]oracle.Fate{skipped(11, 15, 5), ran(14, 2), ran(16, 2)}, ""},
		"a fire without its run":    {[]oracle.Fate{ran(11, 1), ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: the fire at .* of generation 1, in force from .*, has no run"},
		"the last one is missing":   {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 2)}, "P2: j: the fire at .* has no run"},
		"a run of no fire":          {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 2), ran(15, 2), ran(16, 2)}, "P8: j: run at .* is of generation 2, which was not in force then"},
		"a run beyond the end":      {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 2), ran(16, 2), ran(18, 2)}, "P8: j: run at .* was not in force then"},
		"an old one, too late":      {[]oracle.Fate{ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 2), ran(16, 1)}, "P2: j: run at .* is of generation 1, want one of"},
		"two runs of a fire":        {[]oracle.Fate{ran(11, 1), ran(11, 1), ran(12, 1), ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: run and run are of one fire"},
		"dropped twice":             {[]oracle.Fate{skipped(11, 12, 2), skipped(12, 12, 1), ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: the fire at .* was dropped by skip and skip"},
		"counted by the one before": {[]oracle.Fate{skipped(11, 12, 2), skipped(12, 12, 0), ran(13, 1), ran(14, 2), ran(16, 2)}, ""},
		"counted twice, at once":    {[]oracle.Fate{atOnce(skipped(11, 12, 2)), atOnce(skipped(12, 12, 1)), ran(13, 1), ran(14, 2), ran(16, 2)}, ""},
		"counted by none":           {[]oracle.Fate{ran(11, 1), skipped(12, 12, 0), ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: the fire at .* of generation 1, in force from .*, has no run"},
		"dropped without a reason":  {[]oracle.Fate{unexplained, ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: skip has no reason"},
		"dropped, and ran":          {[]oracle.Fate{skipped(11, 12, 2), ran(12, 1), ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: run ran, and was dropped by skip"},
		"dropped, wrongly counted":  {[]oracle.Fate{skipped(11, 12, 3), ran(13, 1), ran(14, 2), ran(16, 2)}, "P2: j: skip counts 3 dropped fires"},
	} {
		all[name] = oracle.Match("j", reigns, r.fates, 20_000)
		found := strings.Join(all[name], "\n")
		if r.want == "" && found != "" || r.want != "" && !matches(r.want, all[name]) {
			t.Errorf("%s: want %q, found %q", name, r.want, found)
		}
	}
	return all
}
