package wire

import (
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// Job is what PUT takes and GET gives.
type Job struct {
	Name string `json:"name,omitempty" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"the job's name; answers have it, a PUT may leave it out, or have the name of its path"`
	job.Definition
	Status *JobStatus `json:"status,omitempty" readOnly:"true" doc:"what only Belfry writes; ignored in requests"`
}

// Called refuses a job whose own name is another than the one that it has where it stands: in a path, or as a key.
func (j Job) Called(name string) error {
	if j.Name == "" || j.Name == name {
		return nil
	}
	return invalid.Field("name", j.Name, fmt.Sprintf("%q, which is what this job is called here, or the field left out", name))
}

// JobStatus is what Belfry says of a job.
type JobStatus struct {
	Generation   int64       `json:"generation,omitempty" doc:"version of the definition; it only grows"`
	ETag         string      `json:"etag,omitempty" doc:"of the definition, for If-Match"`
	NextRuns     []time.Time `json:"next_runs,omitempty" doc:"the next nominal times, if any"`
	FinalRun     time.Time   `json:"final_run,omitzero" doc:"under max_runs: the last nominal time that the schedule has"`
	CreatedAt    time.Time   `json:"created_at,omitzero" doc:"when the job was first made"`
	UpdatedAt    time.Time   `json:"updated_at,omitzero" doc:"when this generation was made"`
	Tries        string      `json:"tries,omitempty" doc:"how often and for how long a run that fails is tried, in words: the waits of retry together, as they are drawn on average"`
	PausedReason string      `json:"paused_reason,omitempty" doc:"why it was paused"`
	Fault        string      `json:"fault,omitempty" doc:"why the schedule was parked: its next fire could not be computed"`
}

// NamedJob is a job of a batch, where no path names it: its name has to be there.
type NamedJob Job

// JobPage is a page of jobs, by name.
type JobPage struct {
	Items []Job  `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// JobBatch puts many jobs.
type JobBatch struct {
	Jobs []NamedJob `json:"jobs" minItems:"1" maxItems:"1000" doc:"the jobs to create or replace"`
}

// JobVerdict is what became of one job of many that were put, paused, resumed, deleted or labelled. It has nothing of the job that may be large.
type JobVerdict struct {
	Name    string    `json:"name"`
	Status  int       `json:"status" doc:"the HTTP status that a request for this job alone would have had"`
	Change  string    `json:"change,omitempty" enum:"created,updated,deleted,unchanged" doc:"what was done, or would be; none where it was refused"`
	ETag    string    `json:"etag,omitempty" doc:"of the definition as it stands now, for If-Match; left out of a dry run"`
	NextRun time.Time `json:"next_run,omitzero" doc:"of a job that was put, its next nominal time, if any; left out of a dry run"`
	Problem *Problem  `json:"problem,omitempty" doc:"why it was refused"`
}

// JobVerdicts is the answer to a batch, in the order of the request.
type JobVerdicts struct {
	Items []JobVerdict `json:"items"`
}

// PauseRequest pauses a job.
type PauseRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"for people"`
}

// Nothing is the body of a request that has nothing to say. Every PUT and POST carries JSON, so that no web page can send
// one without the browser asking first.
type Nothing struct{}
