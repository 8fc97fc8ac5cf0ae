package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// takes says for each action which fields it needs, and which others it may have.
var takes = map[Action]struct{ needs, may []string }{
	Put:     {needs: []string{"job", "definition"}, may: []string{"if_match"}},
	Delete:  {needs: []string{"job"}},
	Pause:   {needs: []string{"job"}, may: []string{"reason"}},
	Resume:  {needs: []string{"job"}},
	Trigger: {may: []string{"job", "as", "run_at", "delay", "payload", "ignore_pause", "overlap", "runs"}},
	Cancel:  {may: []string{"run", "job", "reason"}},
	Retry:   {needs: []string{"run"}, may: []string{"force"}},
	Redrive: {needs: []string{"job"}},
	Release: {needs: []string{"run"}},
	SetGate: {needs: []string{"name", "definition"}},
	Close:   {needs: []string{"gate"}, may: []string{"reason"}},
	Open:    {needs: []string{"gate"}, may: []string{"run", "key"}},
	Down:    {needs: []string{"for"}},
	Workers: {needs: []string{"n"}},
	Clock:   {needs: []string{"by"}},
	Look:    {needs: []string{"as"}},
}

// given are the fields of a line that say something, beside at and do.
func given(line wire.ScenarioLine) map[string]bool {
	all := map[string]bool{"job": line.Job != "", "as": line.As != "", "run_at": line.RunAt != "", "delay": line.Delay != nil,
		"payload": line.Payload != nil, "ignore_pause": line.IgnorePause, "overlap": !line.Overlap.IsZero(), "runs": line.Runs != nil, "run": line.Run != "", "definition": line.Definition.Given,
		"name": line.Name != "", "gate": line.Gate != "", "key": line.Key != "",
		"if_match": line.IfMatch != "", "reason": line.Reason != "", "force": line.Force, "for": line.For != 0, "n": line.N != nil, "by": line.By != ""}
	maps.DeleteFunc(all, func(_ string, is bool) bool { return !is })
	return all
}

func (r *resolver) script() {
	if len(r.document.Script) > MaxScript {
		r.refuse(invalid.Field("script", fmt.Sprintf("%d lines", len(r.document.Script)), fmt.Sprintf("at most %d", MaxScript)))
		return
	}
	names := map[string]bool{} // of runs and looks that were given so far
	for i, line := range r.document.Script {
		r.line(i, line, names)
	}
	r.references()
}

func (r *resolver) line(i int, text wire.ScenarioLine, names map[string]bool) {
	field := fmt.Sprintf("script[%d]", i)
	do := Action(text.Do)
	l := Line{Number: i + 1, Do: do, Job: text.Job, IfMatch: text.IfMatch, Reason: text.Reason, Force: text.Force, For: text.For.Std()}
	if at, ok := r.instant(field+".at", text.At); ok {
		if l.At = at; r.Start.IsZero() {
			// nothing can be said of times
		} else if at.Before(r.Start) {
			r.refuse(invalid.Field(field+".at", text.At, "a time not before start, "+r.Start.Format(time.RFC3339)))
		} else if at.Sub(r.Start) > MaxSpan {
			r.refuse(invalid.Field(field+".at", text.At, fmt.Sprintf("a time at most %s after start", schedule.Duration(MaxSpan))))
		}
	}
	allowed, known := takes[do]
	if !known {
		actions := slices.Sorted(maps.Keys(takes))
		texts := make([]string, len(actions))
		for k, a := range actions {
			texts[k] = string(a)
		}
		want := anyOf(texts) + r.meant(text.Do, texts)
		if slices.Contains(wire.ScenarioActionsToCome, text.Do) {
			want += "; this one is not built yet"
		}
		r.refuse(invalid.Field(field+".do", text.Do, want))
		r.Script = append(r.Script, l)
		return
	}
	has := given(text)
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if !slices.Contains(allowed.needs, name) && !slices.Contains(allowed.may, name) {
			want := fmt.Sprintf("no %s with do: %s", name, do)
			if do == Trigger && slices.Contains(wire.ScenarioFieldsToCome["ScenarioTrigger"], name) {
				want += "; this one is not built yet"
			}
			r.refuse(invalid.Missing(field+"."+name, want))
		}
	}
	for _, name := range allowed.needs {
		if want := needed[name]; !has[name] {
			if do == SetGate && name == "definition" {
				want = "a gate, as PUT /v1/gates/{gate} takes it, or null to delete it"
			}
			r.refuse(invalid.Missing(field+"."+name, want))
		}
	}
	if text.Job != "" && job.ValidName(text.Job) != nil {
		r.refuse(invalid.Field(field+".job", text.Job, invalid.All(job.ValidName(text.Job))[0].Want))
	}
	switch do {
	case Put:
		switch j := text.Definition.Job; {
		case j != nil:
			l.Definition = j.Definition
			r.refuse(invalid.Under(field+".definition", j.Called(text.Job)))
			_, err := r.judged(text.Job, l.Definition)
			r.refuse(invalid.Under(field+".definition", err))
		case text.Definition.Given:
			r.refuse(invalid.Missing(field+".definition", needed["definition"]))
		}
	case SetGate:
		l.Gate = text.Name
		r.gateName(field+".name", text.Name)
		switch g := text.Definition.Gate; {
		case g != nil:
			l.Limits = &g.Definition
			r.refuse(invalid.Under(field+".definition", g.Called(text.Name)))
			r.refuse(invalid.Under(field+".definition", g.Definition.Validate()))
		case text.Definition.Job != nil:
			r.refuse(invalid.Missing(field+".definition", "a gate such as {limit: 10}, or null to delete it"))
		}
	case Close, Open:
		l.Gate, l.Key = text.Gate, text.Key
		r.gateName(field+".gate", text.Gate)
		if text.Run != "" && do == Open {
			l.Run = r.ref(field+".run", text.Run)
		}
		if _, own := gate.OwnOf(text.Gate); !own && text.Gate != "" && (text.Run != "" || text.Key != "") {
			r.refuse(invalid.Field(field+".gate", text.Gate, "the own gate of a job, job:NAME: no other has a line that run or key would choose"))
		}
	case Trigger:
		r.triggers(&l, field, text, names)
	case Cancel, Retry, Release:
		if text.Run != "" {
			l.Run = r.ref(field+".run", text.Run)
		}
		if do == Cancel && has["run"] == has["job"] {
			r.refuse(invalid.Missing(field, "either run or job: what is to be cancelled"))
		}
	case Down:
		r.lasts(field+".for", l.For)
	case Workers:
		if text.N != nil {
			l.Workers = *text.N
		}
	case Clock:
		l.By = r.step(field+".by", text.By)
	case Look:
		l.As = text.As
		r.name(field+".as", text.As, names)
	}
	r.Script = append(r.Script, l)
}

// needed says what would be right where a field is missing.
var needed = map[string]string{
	"job":        "the name of a job",
	"definition": "a job, as PUT /v1/jobs/{job} takes it",
	"name":       "the name of a gate",
	"gate":       "the name of a gate",
	"run":        "the name that a trigger gave the run with as, or job@time for one of a schedule",
	"for":        `a duration such as "20m": how long`,
	"n":          "a number of attempts",
	"by":         `a duration such as "2s", or "-2s": how far`,
	"as":         "a name for what it sees",
}

// gateName refuses what no gate is called. Belfry itself refuses to edit the own gate of a job.
func (r *resolver) gateName(field, name string) {
	if _, own := gate.OwnOf(name); name != "" && !own {
		if err := gate.ValidName(name); err != nil {
			r.refuse(invalid.Field(field, name, invalid.All(err)[0].Want))
		}
	}
}

// name takes a name that a line gives.
func (r *resolver) name(field, name string, names map[string]bool) {
	switch {
	case name == "":
	case !namePattern.MatchString(name):
		r.refuse(invalid.Field(field, name, patterns[job.NamePattern].want))
	case names[name]:
		r.refuse(invalid.Field(field, name, "a name that no line before has given"))
	default:
		names[name] = true
	}
}

var namePattern = patterns[job.NamePattern].is

func (r *resolver) triggers(l *Line, field string, text wire.ScenarioLine, names map[string]bool) {
	if text.Runs == nil {
		l.Job = ""
		l.Triggers = []Triggered{r.trigger(field, text.ScenarioTrigger, names)}
		return
	}
	l.Batch = true
	single := given(wire.ScenarioLine{ScenarioTrigger: text.ScenarioTrigger})
	for _, name := range slices.Sorted(maps.Keys(single)) {
		r.refuse(invalid.Missing(field+"."+name, "no "+name+" beside runs, whose entries have their own"))
	}
	if n := len(text.Runs); n == 0 || n > maxBatch {
		r.refuse(invalid.Field(field+".runs", fmt.Sprintf("%d runs", n), fmt.Sprintf("1 to %d", maxBatch)))
		return
	}
	for k, one := range text.Runs {
		l.Triggers = append(l.Triggers, r.trigger(fmt.Sprintf("%s.runs[%d]", field, k), one, names))
	}
}

// maxBatch is how many runs one request asks for.
const maxBatch = 1000

func (r *resolver) trigger(field string, text wire.ScenarioTrigger, names map[string]bool) Triggered {
	t := Triggered{As: text.As, Asked: control.Asked{Job: text.Job}}
	t.Payload, t.IgnorePause, t.Overlap = text.Payload, text.IgnorePause, text.Overlap
	if err := t.Overlap.Check(); err != nil {
		r.refuse(invalid.Under(field, err))
	}
	if text.Job == "" {
		r.refuse(invalid.Missing(field+".job", needed["job"]))
	} else if err := job.ValidName(text.Job); err != nil {
		r.refuse(invalid.Field(field+".job", text.Job, invalid.All(err)[0].Want))
	}
	if text.RunAt != "" {
		if at, ok := r.instant(field+".run_at", text.RunAt); ok {
			t.At = &at
		}
	}
	if text.Delay != nil {
		delay := text.Delay.Std()
		r.lasts(field+".delay", delay)
		if t.Delay = &delay; text.RunAt != "" {
			r.refuse(invalid.Missing(field+".delay", "no delay beside run_at"))
		}
	}
	r.name(field+".as", text.As, names)
	return t
}

// ref reads how a line names a run.
func (r *resolver) ref(field, text string) RunRef {
	name, nominal, scheduled := strings.Cut(text, "@")
	if !scheduled {
		if !namePattern.MatchString(name) {
			r.refuse(invalid.Field(field, text, needed["run"]))
		}
		return RunRef{As: name}
	}
	if !namePattern.MatchString(name) {
		r.refuse(invalid.Field(field, text, needed["run"]))
		return RunRef{}
	}
	at, _ := r.instant(field, nominal)
	return RunRef{Job: name, Nominal: at}
}

// step reads how far a clock is set, in either direction.
func (r *resolver) step(field, text string) time.Duration {
	if text == "" {
		return 0
	}
	size, back := strings.CutPrefix(text, "-")
	by, err := schedule.ParseDuration(size)
	if err != nil || by == 0 || by.Std()%time.Millisecond != 0 || by.Std() > OpenSpan {
		r.refuse(invalid.Field(field, text, `a duration in whole milliseconds such as "2s", or "-2s" to set it back`))
		return 0
	}
	if back {
		return -by.Std()
	}
	return by.Std()
}

// references refuses lines about runs that nobody has asked for by then.
func (r *resolver) references() {
	order := slices.Clone(r.Script)
	slices.SortStableFunc(order, func(a, b Line) int { return a.At.Compare(b.At) })
	all, sofar := []string{}, map[string]bool{}
	for _, l := range order {
		for _, t := range l.Triggers {
			if t.As != "" {
				all = append(all, t.As)
			}
		}
	}
	for _, l := range order {
		for _, t := range l.Triggers {
			sofar[t.As] = true
		}
		if l.Run.As == "" || sofar[l.Run.As] {
			continue
		}
		want := "the name of a run that a trigger has asked for by then" + cmp.Or(r.meant(l.Run.As, all), ", or job@time for one of a schedule")
		r.refuse(invalid.Field(fmt.Sprintf("script[%d].run", l.Number-1), l.Run.As, want))
	}
}
