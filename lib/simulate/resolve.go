package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The times that a scenario may have.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Resolve makes a scenario of its document, whose fields have the form that the API describes. The error is joined *invalid.Errors, that
// name each field that is wrong.
func Resolve(document wire.Scenario) (Scenario, error) {
	r := &resolver{Scenario: Scenario{Events: document.Events}, document: document, steps: map[string]bool{}, unread: map[string]bool{}}
	r.clock()
	r.gates()
	r.jobs()
	r.script()
	r.outcomes()
	return r.Scenario, errors.Join(r.wrong...)
}

type resolver struct {
	Scenario
	document wire.Scenario
	wrong    []error
	compared int             // names with one that is wrong, so far
	steps    map[string]bool // JOB/PATH of each step of the workflows that calls a target
	unread   map[string]bool // jobs of whose steps nothing is known, since a workflow of theirs is wrong
}

func (r *resolver) refuse(err error) {
	if err != nil {
		r.wrong = append(r.wrong, err)
	}
}

// mostCompared is how often a document has names compared for what somebody may have meant: thousands that are wrong beside thousands that
// are right would take a server long, and nobody reads that many questions.
const mostCompared = 50_000

// meant is as the function, while there are not too many names.
func (r *resolver) meant(given string, known []string) string {
	if r.compared += len(known); r.compared > mostCompared {
		return ""
	}
	return meant(given, known)
}

func (r *resolver) clock() {
	r.Workers = cmp.Or(r.document.Workers, DefaultWorkers)
	switch start := r.document.Start; {
	case start.IsZero():
		r.refuse(invalid.Missing("start", `a time such as "2026-01-05T00:00:00Z": when the clock begins`))
	case start.Before(earliest) || start.After(latest) || start.Nanosecond()%int(time.Millisecond) != 0:
		r.refuse(invalid.Field("start", start.Format(time.RFC3339Nano), "a time of whole milliseconds, from 2000 to 2998"))
	default:
		r.Start = start.UTC()
	}
	if r.document.Until == "" {
		return
	}
	var ok bool
	if r.Until, ok = r.instant("until", r.document.Until); !ok || r.Start.IsZero() {
		return
	}
	if span := r.Until.Sub(r.Start); span <= 0 || span > MaxSpan {
		r.refuse(invalid.Field("until", r.document.Until, fmt.Sprintf("a time after start, by at most %s", schedule.Duration(MaxSpan))))
	}
}

// instant reads a time, or an offset from start.
func (r *resolver) instant(field, text string) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Nanosecond()%int(time.Millisecond) != 0 {
			r.refuse(invalid.Field(field, text, "whole milliseconds"))
			return time.Time{}, false
		}
		return at.UTC(), true
	}
	offset, ok := r.length(field, text)
	if !ok {
		return time.Time{}, false
	}
	return r.Start.Add(offset), true
}

// length reads an offset from start.
func (r *resolver) length(field, text string) (time.Duration, bool) {
	offset, err := schedule.ParseDuration(text)
	switch {
	case err != nil:
		r.refuse(invalid.Field(field, text, `a time such as "2026-01-05T00:35:00Z", or an offset from start such as "35m" or "1d12h"`))
	case offset.Std()%time.Millisecond != 0:
		r.refuse(invalid.Field(field, text, "whole milliseconds"))
	case offset.Std() > MaxSpan:
		r.refuse(invalid.Field(field, text, fmt.Sprintf("an offset of at most %s", schedule.Duration(MaxSpan))))
	default:
		return offset.Std(), true
	}
	return 0, false
}

// anyQueue takes every name that a queue may have: a scenario has no servers.
func anyQueue(name string) bool { return job.ValidName(name) == nil }

// judged gives what is wrong with a job of a scenario, and its schedule. It notes the steps of a workflow.
func (r *resolver) judged(name string, def job.Definition) (*schedule.Schedule, error) {
	compiled, err := def.WithDefaults().Validate(anyQueue)
	if def.Target.Workflow == nil {
		return compiled, err
	}
	if err != nil { // as in the API, what is wrong with the job is told first
		r.unread[name] = true
		return compiled, err
	}
	w, err := flow.CheckTarget(def.Target.Workflow, def.Queue, flow.AnyQueue)
	if err != nil {
		r.unread[name] = true
		return compiled, err
	}
	for i := range w.Nodes {
		if w.Nodes[i].Task != nil {
			r.steps[name+"/"+w.Nodes[i].Path] = true
		}
	}
	return compiled, nil
}

func (r *resolver) gates() {
	if len(r.document.Gates) > MaxGates {
		r.refuse(invalid.Field("gates", fmt.Sprintf("%d gates", len(r.document.Gates)), fmt.Sprintf("at most %d", MaxGates)))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.document.Gates)) {
		field := "gates." + name
		if err := gate.ValidName(name); err != nil {
			r.refuse(invalid.Field(field, name, invalid.All(err)[0].Want))
			continue
		}
		given := r.document.Gates[name]
		r.refuse(invalid.Under(field, given.Called(name)))
		r.refuse(invalid.Under(field, given.Definition.Validate()))
		r.Gates = append(r.Gates, Gate{name, given.Definition})
	}
}

// passes refuses a job that names a gate which is not there when it is put at the start, as the API does.
func (r *resolver) passes(field string, def job.Definition) {
	for i, use := range def.Gates {
		at := fmt.Sprintf("%s.gates[%d]", field, i)
		switch there, known := r.document.Gates[use.Gate]; {
		case !job.NamesGate(use.Gate): // which is told of already
		case !known:
			r.refuse(invalid.Field(at+".gate", use.Gate, "a gate of this scenario, under gates"+r.meant(use.Gate, slices.Collect(maps.Keys(r.document.Gates)))))
		case there.Definition.Validate() == nil && use.Units > there.Limit:
			r.refuse(invalid.Field(at+".units", strconv.Itoa(use.Units), fmt.Sprintf("at most %d, the limit of the gate %s", there.Limit, use.Gate)))
		}
	}
}

func (r *resolver) jobs() {
	if len(r.document.Jobs) > MaxJobs {
		r.refuse(invalid.Field("jobs", fmt.Sprintf("%d jobs", len(r.document.Jobs)), fmt.Sprintf("at most %d", MaxJobs)))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.document.Jobs)) {
		field := "jobs." + name
		if err := job.ValidName(name); err != nil {
			r.refuse(invalid.Field(field, name, invalid.All(err)[0].Want))
			continue
		}
		def := r.document.Jobs[name].Definition
		r.refuse(invalid.Under(field, r.document.Jobs[name].Called(name)))
		compiled, err := r.judged(name, def)
		r.refuse(invalid.Under(field, err))
		r.passes(field, def)
		if err == nil && compiled != nil && !r.Start.IsZero() {
			if _, fires := compiled.Next(r.Start); !fires {
				r.refuse(invalid.Missing(field+".schedule", "a fire after start, "+r.Start.Format(time.RFC3339)+"; this schedule has none"))
			}
		}
		r.Jobs = append(r.Jobs, Job{name, def})
	}
	r.calledFirst()
}

// calledFirst has the jobs that others call be put before these, and refuses what cannot be. Else they stay in the order of their names.
func (r *resolver) calledFirst() {
	at := make(map[string]int, len(r.Jobs))
	for i, j := range r.Jobs {
		at[j.Name] = i
	}
	const under, done = 1, 2
	come := make([]int, len(r.Jobs))
	ordered := make([]Job, 0, len(r.Jobs))
	var add func(i int)
	add = func(i int) {
		j := r.Jobs[i]
		come[i] = under
		for _, e := range job.Events() {
			called := j.Definition.On.Of(e)
			if called == nil {
				continue
			}
			field := "jobs." + j.Name + ".on." + string(e) + ".job"
			switch k, here := at[called.Job]; {
			case !here:
				r.refuse(invalid.Field(field, called.Job, "a job of this scenario"+meant(called.Job, slices.Collect(maps.Keys(at)))))
			case come[k] == under:
				r.refuse(invalid.Field(field, called.Job, "a job that does not call this one in its turn: a scenario does not play that"))
			case come[k] != done:
				add(k)
			}
		}
		come[i] = done
		ordered = append(ordered, j)
	}
	for i := range r.Jobs {
		if come[i] == 0 {
			add(i)
		}
	}
	r.Jobs = ordered
}

// definedNames are the names that jobs have at some time.
func (r *resolver) definedNames() []string {
	names := slices.Collect(maps.Keys(r.document.Jobs))
	for _, line := range r.document.Script {
		if line.Do == string(Put) {
			names = append(names, line.Job)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *resolver) outcomes() {
	r.Outcomes = map[string]Outcomes{}
	left := MaxOutcomes
	names := r.definedNames()
	for _, name := range slices.Sorted(maps.Keys(r.document.Outcomes)) {
		field := "outcomes." + name
		given := r.document.Outcomes[name]
		if want := r.unnamed(name, names); want != "" {
			r.refuse(invalid.Field(field, name, want))
			continue
		}
		for _, list := range given.Is {
			left -= len(list)
		}
		if left -= len(given.Else); left < 0 {
			r.refuse(invalid.Field(field, "more outcomes", fmt.Sprintf("at most %d in all", MaxOutcomes)))
			return
		}
		r.Outcomes[name] = r.branches(field, given)
	}
}

// unnamed says what would be right where outcomes are for nothing that a scenario has, "" where they are. names are those of jobs.
func (r *resolver) unnamed(name string, names []string) string {
	of, _, step := strings.Cut(name, "/")
	switch {
	case name == "*" || !step && slices.Contains(names, name):
		return ""
	case !step:
		return "the name of a job of this scenario, or * for all others" + r.meant(name, names)
	case !slices.Contains(names, of):
		return "a step of a job of this scenario" + r.meant(of, names)
	case r.steps[name] || r.unread[of]:
		return ""
	case strings.Contains(name, "!"):
		return "a step; what undoes one is not built yet"
	}
	var steps []string
	for known := range r.steps {
		if strings.HasPrefix(known, of+"/") {
			steps = append(steps, known)
		}
	}
	if len(steps) == 0 {
		return "the name of a job alone: " + of + " has no steps that call a target"
	}
	slices.Sort(steps)
	return "a step of " + of + " that calls a target" + r.meant(name, steps)
}

func (r *resolver) branches(field string, given wire.ScenarioOutcomes) Outcomes {
	if given.By == "" && given.Is == nil {
		return Outcomes{Else: r.list(field, given.Else)}
	}
	o := Outcomes{Is: map[string][]Outcome{}}
	var err error
	o.By, err = parsePath(given.By)
	r.refuse(invalid.Under(field, err))
	for _, value := range slices.Sorted(maps.Keys(given.Is)) {
		o.Is[value] = r.list(field+".is."+value, given.Is[value])
	}
	if given.Else != nil {
		o.Else = r.list(field+".else", given.Else)
	}
	return o
}

func (r *resolver) list(field string, given []wire.ScenarioOutcome) []Outcome {
	if len(given) == 0 {
		r.refuse(invalid.Missing(field, "at least one outcome, such as {takes: 1s}"))
	}
	list := make([]Outcome, len(given))
	for i, one := range given {
		list[i] = r.outcome(fmt.Sprintf("%s[%d]", field, i), one)
	}
	return list
}

func (r *resolver) outcome(field string, given wire.ScenarioOutcome) Outcome {
	o := Outcome{Takes: given.Takes.Std(), Result: given.Result, Code: given.Code, Permanent: given.Permanent, Crashes: given.Crashes,
		Never: given.Never, StopsAfter: given.StopsAfter.Std()}
	if given.Fails != nil {
		o.Fails, o.Error = true, *given.Fails
	}
	var ends []string
	for i, is := range []bool{given.Result != nil, o.Fails, o.Crashes, o.Never} {
		if is {
			ends = append(ends, []string{"result", "fails", "crashes", "never"}[i])
		}
	}
	if len(ends) > 1 {
		r.refuse(invalid.Missing(field, "one end of an attempt, got "+strings.Join(ends, " and ")))
	}
	without := func(name string, given, allowed bool, with string) {
		if given && !allowed {
			r.refuse(invalid.Missing(field+"."+name, "no "+name+" without "+with))
		}
	}
	without("permanent", o.Permanent, o.Fails, "fails")
	without("code", o.Code != "", o.Fails, "fails")
	if o.Never && o.Takes != 0 {
		r.refuse(invalid.Missing(field+".takes", "no takes beside never, which has no end of its own"))
	}
	r.lasts(field+".takes", o.Takes)
	r.lasts(field+".stops_after", o.StopsAfter)
	if len(o.Result) > target.MaxResultBytes {
		r.refuse(invalid.Field(field+".result", fmt.Sprintf("%d bytes", len(o.Result)), fmt.Sprintf("at most %d bytes", target.MaxResultBytes)))
	}
	return o
}

// lasts refuses a length of time that no simulation has.
func (r *resolver) lasts(field string, d time.Duration) {
	if d%time.Millisecond != 0 || d > OpenSpan {
		r.refuse(invalid.Field(field, schedule.Duration(d).String(), "whole milliseconds, at most "+schedule.Duration(OpenSpan).String()))
	}
}
