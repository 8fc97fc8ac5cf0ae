package wire

import "time"

// ChosenJobs are the jobs of a request over many: either those listed, or up to max of those that match.
type ChosenJobs struct {
	Jobs           []SeenJob  `json:"jobs,omitempty" minItems:"1" maxItems:"1000" doc:"jobs by name, each once"`
	Matching       *JobFilter `json:"matching,omitempty" doc:"instead of jobs; {} matches all"`
	Cursor         string     `json:"cursor,omitempty" minLength:"1" maxLength:"4096" doc:"of matching: next of the answer before, with the same filter"`
	Max            int        `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"of matching: how many are changed at most, 1000 by default"`
	UnchangedSince *time.Time `json:"unchanged_since,omitempty" doc:"refuse jobs that somebody has changed after this time, with precondition_failed: looked_at of a dry run, so that no job is changed that it did not count"`
	DryRun         bool       `json:"dry_run,omitempty" doc:"only count, and show what would become of them"`
}

// SeenJob names a job in a request over many.
type SeenJob struct {
	Name string `json:"name" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"the job's name"`
	ETag string `json:"etag,omitempty" minLength:"1" maxLength:"256" doc:"only if the job's ETag is this, quotes included, as of If-Match"`
}

// JobFilter chooses jobs; what is left out chooses all.
type JobFilter struct {
	Prefix   string            `json:"prefix,omitempty" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"beginning of the names"`
	Contains string            `json:"contains,omitempty" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9._-]+$" doc:"part of the names, in any letter case"`
	Labels   map[string]string `json:"labels,omitempty" doc:"all of these"`
	Paused   *bool             `json:"paused,omitempty" doc:"only paused jobs, or only those that are not"`
}

// PauseJobs pauses jobs. One that is paused already stays as it is, with its reason.
type PauseJobs struct {
	ChosenJobs
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"for people"`
}

// ResumeJobs resumes jobs.
type ResumeJobs struct {
	ChosenJobs
	PerSecond float64 `json:"per_second,omitempty" minimum:"0.1" maximum:"10000" doc:"how many are resumed in a second, as fast as it goes by default: runs on demand that a pause has held start with it"`
}

// DeleteJobs deletes jobs; their ended runs stay until they expire.
type DeleteJobs struct{ ChosenJobs }

// LabelJobs gives jobs labels, and takes others from them.
type LabelJobs struct {
	ChosenJobs
	Set    map[string]string `json:"set,omitempty" doc:"labels that each is to have, beside those that it has"`
	Remove []string          `json:"remove,omitempty" minItems:"1" maxItems:"32" minLength:"1" maxLength:"128" doc:"names of labels that none is to have"`
}

// BulkJobVerdicts is the answer to a request over many jobs: what became of each, in the order of the request, or by name where a filter chose them. One
// request lasts at most some seconds: next and remaining tell what is left to others.
type BulkJobVerdicts struct {
	Items     []JobVerdict `json:"items" doc:"one a job that was come to; of a dry run with a filter, the first 20 of those that would be changed or refused"`
	Count     int          `json:"count" doc:"how many were changed; of a dry run, how many would be"`
	LookedAt  time.Time    `json:"looked_at" doc:"when the server began to look at the jobs, for unchanged_since"`
	Next      string       `json:"next,omitempty" doc:"more may match: send the same request with this cursor"`
	Remaining []SeenJob    `json:"remaining,omitempty" doc:"of jobs, those that the time was too short for: send them again"`
}

// ExportJobs asks for the definitions of jobs as files have them.
type ExportJobs struct {
	Jobs     []string   `json:"jobs,omitempty" minItems:"1" maxItems:"1000" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"names of jobs, each once"`
	Matching *JobFilter `json:"matching,omitempty" doc:"instead of jobs; {} matches all"`
	Cursor   string     `json:"cursor,omitempty" minLength:"1" maxLength:"4096" doc:"of matching: next of the answer before, with the same filter"`
}

// ExportedJobs is a part of an export.
type ExportedJobs struct {
	YAML      string   `json:"yaml" doc:"a document a job, with --- between them; belfry job apply takes it"`
	Count     int      `json:"count" doc:"how many jobs are in it"`
	Missing   []string `json:"missing,omitempty" doc:"of jobs, those that are not there"`
	Next      string   `json:"next,omitempty" doc:"more may match: send the same request with this cursor; --- belongs between the parts"`
	Remaining []string `json:"remaining,omitempty" doc:"of jobs, those that this answer has no room for: send them again"`
}
