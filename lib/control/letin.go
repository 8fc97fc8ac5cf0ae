package control

import (
	"context"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// letIn lets in those runs of a job that wait and can be, after an edit: a raised limit, a resume, or a claim that was taken away makes room, and a delete ends those that wait. A
// pause has others pass at the gates that jobs name. What a crash before it leaves is left to their checks, or to the repeated edit.
//
// The gates of values may be many, and are the same for all jobs that name one; and those that the job passed before are in nobody's way but its own. So they are looked at only where
// the edit has changed what holds there, or repeats one after which no check has come yet.
func (s *Service) letIn(ctx context.Context, old, settled job.Job, changed bool) {
	all := settled.Deleted && !old.Deleted || old.Def.Paused != settled.Def.Paused || !same(gatesAlone(old), gatesAlone(settled)) ||
		!changed && s.age(settled.Updated) < timer.MaxCheckGap
	passed := gate.PassedBy(settled)
	if all {
		passed = append(passed, settled.GatesBefore...)
	}
	own := gate.Name(settled.Name)
	named := slices.ContainsFunc(passed, func(name string) bool { return name != own })
	if len(passed) == 0 || settled.Def.Paused && !named {
		return
	}
	if !slices.Contains(passed, own) {
		passed = append([]string{own}, passed...)
	}
	if err := s.Dispatch.LetInAll(ctx, settled, passed, all); err != nil {
		s.Log.WarnContext(ctx, "runs that wait are left to their checks", "job", settled.Name, "error", err)
	}
}

// gatesAlone is what a definition says of gates.
func gatesAlone(j job.Job) job.Definition {
	return job.Definition{Overlap: j.Def.Overlap, Gates: j.Def.Gates}
}

// gatesBefore names the gates that runs of a job may wait at from before an edit, and do not pass any more.
func gatesBefore(old, j job.Job) []string {
	now := gate.PassedBy(j)
	names := slices.DeleteFunc(slices.Concat(old.GatesBefore, gate.PassedBy(old)), func(name string) bool { return slices.Contains(now, name) })
	return names[max(0, len(names)-job.MaxGatesBefore):]
}
