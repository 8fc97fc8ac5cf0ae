package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// exportPath only reads, though its method is POST.
const exportPath = manyJobs + "/export"

// readTogether is how many jobs that are named are read at once.
const readTogether = 50

func exportOf(in input[wire.ExportJobs]) (control.JobFilter, error) {
	filter, err := jobFilterOf(in.body.Matching)
	if in.body.Jobs != nil && in.body.Cursor != "" {
		err = errors.Join(err, noCursor)
	}
	return filter, errors.Join(err, eachOnce(in.body.Jobs, "jobs[%d]"))
}

func (a *api) exportJobs(ctx context.Context, _ *struct{}, in input[wire.ExportJobs], filter control.JobFilter) (*answer[wire.ExportedJobs], error) {
	out := &export{left: a.PageBytes - pageFrame, measure: a.Measure}
	if in.body.Jobs == nil {
		jobs, next, err := a.Control.Jobs(ctx, in.tenant, filter, in.body.Cursor, control.MaxLimit)
		if err != nil {
			return nil, err
		}
		out.Next = next
		for i, j := range jobs {
			if fits, err := out.add(a.jobForm(j)); err != nil {
				return nil, err
			} else if !fits {
				out.Next = control.AfterJob(jobs[i-1])
				break
			}
		}
	}
	for names := in.body.Jobs; len(names) > 0; {
		part := names[:min(len(names), readTogether)]
		jobs, err := a.Control.Named(ctx, in.tenant, part)
		if err != nil {
			return nil, err
		}
		for i, j := range jobs {
			if j.Generation == 0 {
				out.Missing = append(out.Missing, part[i])
			} else if fits, err := out.add(a.jobForm(j)); err != nil {
				return nil, err
			} else if !fits {
				out.Remaining = names[i:]
				break
			}
		}
		if out.Remaining != nil {
			break
		}
		names = names[len(part):]
	}
	out.YAML = out.text.String()
	return &answer[wire.ExportedJobs]{out.ExportedJobs}, nil
}

// export is an answer that fills.
type export struct {
	wire.ExportedJobs
	text    bytes.Buffer
	left    int // bytes that the answer has room for
	measure func([]byte) int
}

// add adds a job unless there is no room for it; the first one always has.
func (e *export) add(j wire.Job) (bool, error) {
	value, err := jobfile.Export(j.Name, j.Definition)
	if err != nil {
		return false, fmt.Errorf("export %s: %w", j.Name, err)
	}
	text := manifest.YAML(value)
	if e.left -= e.measure(plainJSON(string(text))) + 8; e.left < 0 && e.Count > 0 {
		return false, nil
	}
	if e.Count > 0 {
		e.text.WriteString("---\n")
	}
	e.text.Write(text)
	e.Count++
	return true, nil
}
