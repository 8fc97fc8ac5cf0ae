package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// callee is a job that a definition calls, and the field that names it.
type callee struct{ field, name string }

func calledBy(def job.Definition) (all []callee) {
	for _, e := range job.Events() {
		if c := def.On.Of(e); c != nil {
			all = append(all, callee{"on." + string(e) + ".job", c.Job})
		}
	}
	return all
}

// seekCallees refuses requests that name a job that does not exist, or their own. As with the job that a run is asked of, a remembered one will do.
func (s *Service) seekCallees(ctx context.Context, tenant string, orders []*order) {
	stands := map[string]*sought{}
	var all []*sought
	for _, o := range orders {
		for _, e := range job.Events() {
			if name := o.asked.Callees.Of(e); name != "" && stands[name] == nil {
				stands[name] = &sought{name: name}
				all = append(all, stands[name])
			}
		}
	}
	dispatch.Parallel(all, fanOut, func(_ int, w *sought) {
		if w.job, w.err = s.Dispatch.Book.Known(ctx, tenant, w.name, s.Now()); w.err == nil {
			w.err = existing(&w.job)
		}
	})
	for _, o := range orders {
		var wrong []error
		for _, e := range job.Events() {
			name, field := o.asked.Callees.Of(e), "on."+string(e)+".job"
			var refused *Refusal
			switch {
			case name == "":
			case name == o.asked.Job:
				wrong = append(wrong, callsItself(field, name))
			case errors.As(stands[name].err, &refused):
				wrong = append(wrong, invalid.Field(field, name, "a job that exists"))
			case stands[name].err != nil:
				wrong = append(wrong, stands[name].err)
			}
		}
		o.Err = errors.Join(wrong...)
	}
}

// callsItself refuses a callback that names the job whose runs it is to tell of.
func callsItself(field, name string) error {
	return invalid.Field(field, name, "another job: its callbacks would stand in its own history, and wait in its own line")
}

// callsNot refuses a definition that calls the job it is of.
func callsNot(name string, def job.Definition) error {
	var wrong []error
	for _, c := range calledBy(def) {
		if c.name == name {
			wrong = append(wrong, callsItself(c.field, name))
		}
	}
	return errors.Join(wrong...)
}

// refuseNew refuses those that a job does not call as it stands. It may be edited although one of them is gone by now.
func refuseNew(uncallable []callee, standing job.Definition) error {
	var wrong []error
	for _, c := range uncallable {
		if !slices.Contains(calledBy(standing), c) {
			wrong = append(wrong, invalid.Field(c.field, c.name, "a job that exists: put that one first, or with the same request"))
		}
	}
	return errors.Join(wrong...)
}

// callable notes of each draft which of its callbacks name no job that stands, and none that beside says is put by the same request.
func (s *Service) callable(ctx context.Context, tenant string, beside map[string]bool, drafts ...*put) error {
	stands := map[string]bool{}
	for _, p := range drafts {
		for _, c := range calledBy(p.def) {
			if !beside[c.name] {
				stands[c.name] = false
			}
		}
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(stands)), store.MaxKeys) {
		jobs, err := s.Dispatch.Book.Jobs(ctx, tenant, some...)
		if err != nil {
			return fmt.Errorf("read the jobs that are called: %w", err)
		}
		for _, j := range jobs {
			stands[j.Name] = j.Broken != nil || existing(&j) == nil
		}
	}
	for _, p := range drafts {
		p.uncallable = nil
		for _, c := range calledBy(p.def) {
			if !beside[c.name] && !stands[c.name] {
				p.uncallable = append(p.uncallable, c)
			}
		}
	}
	return nil
}
