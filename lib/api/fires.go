package api

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

type jobFires struct {
	jobPath
	From  time.Time `query:"from" doc:"fires after this time, now by default"`
	Count int       `query:"count" minimum:"1" maximum:"100" doc:"how many, 10 by default"`
}

// defaultFires is how many fires of a job are shown unless told otherwise.
const defaultFires = 10

func (a *api) listJobFires(ctx context.Context, p *jobFires, in input[noBody]) (*answer[wire.JobFires], error) {
	j, err := a.Control.Job(ctx, in.tenant, p.Job)
	if err != nil {
		return nil, err
	}
	from, count := p.From, p.Count
	if from.IsZero() {
		from = a.Now()
	}
	if count == 0 {
		count = defaultFires
	}
	shown := wire.JobFires{Fires: []wire.Fire{}}
	if j.Def.Schedule == nil {
		shown.Idle = "on_demand"
		return &answer[wire.JobFires]{shown}, nil
	}
	compiled, fault := j.Def.Schedule.Compile()
	if fault == nil && j.Fault == "" {
		shown.Description, shown.Timezone, shown.Fires = compiled.Describe(), j.Def.Schedule.Timezone, wire.FiresOf(compiled, from, count)
	}
	switch {
	case fault != nil || j.Fault != "":
		shown.Idle = "faulty"
	case len(wire.FiresOf(compiled, a.Now(), 1)) == 0:
		shown.Idle = "over"
	case j.Def.Paused:
		shown.Idle = "paused"
	}
	return &answer[wire.JobFires]{shown}, nil
}
