package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Blocker is a run that ended badly, and behind which a line stands still.
type Blocker struct {
	Run   string
	Key   string // as gate.ShownKey shows it, where the job has a gate for each value of a key
	State run.State
	Since int64 // when it ended, Unix ms
	Begun bool  // it is that of a workflow whose steps have begun, and cannot be retried
}

func blockersOf(of gate.ID, ended []run.Run) (all []Blocker) {
	for _, r := range ended {
		all = append(all, Blocker{Run: r.ID.String(), Key: gate.ShownKey(of.Key), State: r.State, Since: r.Ended, Begun: r.Headed()})
	}
	return all
}

// toGoOn says of a line that stands still behind the run, at the gate of that name, by what it goes on, for people; and the commands for that.
func (b Blocker) toGoOn(gate string) (text, commands string) {
	text, commands = "it goes on when somebody opens the gate", fmt.Sprintf("belfry gate open %s --run %s", gate, b.Run)
	if b.Begun {
		return text + ", and that run, of a workflow, cannot be retried", commands
	}
	retry := "belfry run retry " + b.Run
	if b.State == run.Unknown { // its effect may have happened
		retry += " --force"
	}
	return "it goes on when that run is retried and succeeds, or when somebody opens the gate", retry + ", or " + commands
}

// Opening says which line of a job is to go on.
type Opening struct {
	Run    string // the ID of the run behind which it stands still, "" for whichever that is
	Since  int64  // with Run: only if it ended then, as Blocker.Since says; 0 for whenever it did
	Key    string // where the job has a line for each value of a key: the value, as that or as gate.ShownKey shows it
	Reason string
}

// OpenLine lets the line of a job's own gate go on that stands still behind a run which ended badly: whoever is next is let in. by and the reason are kept with the gate. Without a run it changes nothing where
// no line stands still; a job that has, or had, a line for each value wants to hear of which. One that names a run does so only where the line stands still
// behind that run, and with an end only where it has not ended anew since; else it is refused, but for one that has been done already, which is answered as the first time. match is as of Pause, and holds of "*" alone.
func (s *Service) OpenLine(ctx context.Context, tenant, name, by string, o Opening, match Match) (Gate, error) {
	if err := gateReason(o.Reason); err != nil {
		return Gate{}, err
	}
	of, _ := gate.OwnOf(name)
	j, err := s.jobOfGate(ctx, tenant, name, of)
	if err != nil {
		return Gate{}, err
	}
	if j.Def.Overlap.Policy != job.OverlapStrict {
		return Gate{}, refuse(CodeOwnGate, "%s is the own gate of a job that is not strict, so its line never stands still", name)
	}
	if err := match.holds("gate "+name, "", true, CodeGateExists); err != nil {
		return Gate{}, err
	}
	at, id, err := s.lineToOpen(ctx, j, o)
	if err != nil {
		return Gate{}, err
	}
	blocked, err := s.Dispatch.GoOn(ctx, at, id, o.Since, by, o.Reason)
	switch {
	case errors.Is(err, dispatch.ErrNotBlocking):
		return Gate{}, refuse(CodeNotBlocking, "the line of %s stands still behind %s, and not behind %s", at, blocked[0].ID, id)
	case errors.Is(err, dispatch.ErrEndedAnew):
		return Gate{}, refuse(CodeNotBlocking, "run %s was retried, and has ended as %s again, at %s and not at %s: the line of %s stands still behind that end", id, blocked[0].State,
			time.UnixMilli(blocked[0].Ended).UTC().Format(time.RFC3339Nano), time.UnixMilli(o.Since).UTC().Format(time.RFC3339Nano), at)
	case errors.Is(err, dispatch.ErrNotStanding) && o.Run == "" && o.Key == "" && j.Keyed:
		return Gate{}, lacksKey(j)
	case errors.Is(err, dispatch.ErrInProgress):
		return Gate{}, refuse(CodeNotBlocking, "run %s, or its retry, is in progress: the line of %s waits for it, and stands still when it has ended badly", id, at)
	case errors.Is(err, dispatch.ErrNotStanding) && o.Run != "":
		return Gate{}, refuse(CodeNotBlocking, "the line of %s does not stand still behind %s, nor behind another run", at, id)
	case err != nil && !errors.Is(err, dispatch.ErrNotStanding):
		return Gate{}, err
	case err == nil && len(blocked) > 0:
		s.Log.InfoContext(ctx, "a line goes on that stood still", "tenant", tenant, "gate", at.String(), "run", blocked[0].ID.String(), "by", by, "reason", o.Reason)
	}
	return s.Gate(ctx, tenant, name)
}

// lacksKey refuses to open a line where each value has one, and the line of all does not stand still. It may be the job's key of before by which runs entered.
func lacksKey(j job.Job) error {
	if j.Def.Overlap.Key == "" {
		return invalid.Missing("key", "a value of the key that the job had, or run with the ID of a run: the job had a line for each value")
	}
	return invalid.Missing("key", fmt.Sprintf("a value of %s, or run with the ID of a run: the job has a line for each value", j.Def.Overlap.Key))
}

// lineToOpen finds the line that is meant, and the run that was named.
func (s *Service) lineToOpen(ctx context.Context, j job.Job, o Opening) (at gate.ID, id run.ID, err error) {
	at = gate.Own(j.Tenant, j.Name)
	if o.Key != "" {
		at.Key = gate.KeyAsked(o.Key)
	}
	if o.Run == "" && o.Since != 0 {
		return at, id, invalid.Missing("run", "the ID of the run that ended at since")
	}
	if o.Run == "" {
		return at, id, nil
	}
	if id, err = run.ParseID(o.Run); err != nil || id.Job != j.Name || id.IsStep() {
		return at, id, invalid.Field("run", o.Run, "the ID of a run of the job "+j.Name)
	}
	r, err := s.Run(ctx, j.Tenant, id)
	if err != nil || o.Key != "" {
		return at, id, err
	}
	if !r.Placed { // its record does not say at which gate it was
		if e, err := s.Dispatch.EditionOf(ctx, r); err == nil {
			r = s.Dispatch.MayHold(ctx, r, e)
		}
	}
	return gate.OwnGate(r), id, nil
}
