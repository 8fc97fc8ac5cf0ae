package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// inOrder puts the jobs that others call before these, where one request does not hold them all: who calls a job that does not exist is refused. Else the
// order stays.
func (a *apply) inOrder(all []document) []document {
	a.named = make(map[string]int, len(all))
	for i, d := range all {
		a.named[d.Name] = i
	}
	if len(all) <= chunkJobs {
		return all
	}
	ordered, seen := make([]document, 0, len(all)), make([]bool, len(all))
	var add func(i int)
	add = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, name := range all[i].Calls() {
			if called, here := a.named[name]; here {
				add(called)
			}
		}
		ordered = append(ordered, all[i])
	}
	for i := range all {
		add(i)
	}
	return ordered
}

// beside are the jobs that some jobs call and that this apply puts, too.
func (a *apply) beside(jobs []document) []string {
	names := map[string]bool{}
	for _, d := range jobs {
		for _, name := range d.Calls() {
			if _, here := a.named[name]; here {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// happened says in words what a job is called for.
var happened = map[job.Event]string{
	job.OnSucceeded: "a run has succeeded", job.OnFailed: "a run has failed", job.OnRecovered: "a run has recovered", job.OnMissed: "fires were missed",
}

// callsOf says in a few words what a job calls, "" for nothing.
func callsOf(j wire.Job) (text string) {
	for _, e := range job.Events() {
		if called := j.On.Of(e); called != nil {
			if text != "" {
				text += ", "
			}
			text += called.Job + " when " + happened[e]
			if called.Window != 0 {
				text += " (together with others of " + called.Window.String() + ")"
			}
		}
	}
	return text
}

// calledBy says whom a run's own request wants to be called, "" for nobody.
func calledBy(r wire.Run) string {
	if r.On == nil {
		return ""
	}
	called := func(c *wire.Callee) *job.Callback {
		if c == nil {
			return nil
		}
		return &job.Callback{Job: c.Job}
	}
	return callsOf(wire.Job{Definition: job.Definition{On: job.Callbacks{Succeeded: called(r.On.Succeeded), Failed: called(r.On.Failed)}}})
}

// toldOf says what a run tells of, "" for nothing.
func toldOf(r wire.Run) string {
	if r.Callback == nil {
		return ""
	}
	told := r.Callback.Run + " has " + r.Callback.Event
	if r.Callback.Event == string(job.OnMissed) {
		told = "missed fires, from " + r.Callback.Run + " on"
	}
	if others := r.Callback.Count - 1; others > 0 {
		told += fmt.Sprintf(", and %d more", others)
	}
	return told
}
