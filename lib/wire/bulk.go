package wire

import "time"

// CancelRuns cancels runs: either those listed, or up to max of those that match.
type CancelRuns struct {
	Runs     []string   `json:"runs,omitempty" minItems:"1" maxItems:"1000" minLength:"11" maxLength:"152" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$" doc:"IDs of runs"`
	Matching *RunFilter `json:"matching,omitempty" doc:"instead of runs; {} matches all that have not ended"`
	Cursor   string     `json:"cursor,omitempty" minLength:"1" maxLength:"4096" doc:"of matching: next of the answer before, with the same filter"`
	Max      int        `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"of matching: how many at most, 1000 by default"`
	DryRun   bool       `json:"dry_run,omitempty" doc:"only count, and show what would become of the first few"`
	Reason   string     `json:"reason,omitempty" maxLength:"120" doc:"for people"`
}

// RetryRuns runs ended runs again: either those listed, or up to max of those that match.
type RetryRuns struct {
	Runs      []string   `json:"runs,omitempty" minItems:"1" maxItems:"1000" minLength:"11" maxLength:"152" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$" doc:"IDs of runs"`
	Matching  *RunFilter `json:"matching,omitempty" doc:"instead of runs; {} matches all that are failed or dead"`
	Cursor    string     `json:"cursor,omitempty" minLength:"1" maxLength:"4096" doc:"of matching: next of the answer before, with the same filter"`
	Max       int        `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"of matching: how many at most; by default as many as 15 s allow, up to 1000"`
	PerSecond float64    `json:"per_second,omitempty" minimum:"0.1" maximum:"10000" doc:"how fast the runs start, 10 by default"`
	DryRun    bool       `json:"dry_run,omitempty" doc:"only count, and show what would become of the first few"`
	Force     bool       `json:"force,omitempty" doc:"also runs that succeeded or whose outcome is unknown: their effect may then happen twice"`

	EndedBefore *time.Time `json:"ended_before,omitempty" doc:"only runs that ended before this time: a request that is sent a second time does not retry what the first one has, and has ended again. Of runs, the others are refused with precondition_failed"`
}

// RunFilter chooses runs; what is left out chooses all.
type RunFilter struct {
	Job    string            `json:"job,omitempty" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"`
	States []string          `json:"states,omitempty" minItems:"1" maxItems:"11" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown" doc:"any of these"`
	Labels map[string]string `json:"labels,omitempty" doc:"all of these, by the definition that the run has"`
	Error  string            `json:"error,omitempty" minLength:"1" maxLength:"240" doc:"part of the last error, in any letter case"`
	From   *time.Time        `json:"from,omitempty" doc:"due at this time or later"`
	To     *time.Time        `json:"to,omitempty" doc:"due before this time"`
}

// BulkVerdicts is the answer to a request over many runs: what became of each, in the order of the request, or newest first
// where a filter chose them. One request lasts at most some seconds: next and remaining tell what is left to others.
type BulkVerdicts struct {
	Items     []RunVerdict `json:"items" doc:"one a run that was come to; of a dry run with a filter the first 20"`
	Count     int          `json:"count" doc:"how many were done; of a dry run, how many would be"`
	Next      string       `json:"next,omitempty" doc:"more may match: send the same request with this cursor"`
	Remaining []string     `json:"remaining,omitempty" doc:"of runs, those that the time was too short for: send them again"`
}
