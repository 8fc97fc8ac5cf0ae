package wire

import "time"

// Stats is what became of the runs that were due in a window.
type Stats struct {
	From             time.Time    `json:"from" doc:"the beginning of the window, a whole minute or hour"`
	To               time.Time    `json:"to" doc:"its end, which is not part of it"`
	StepSeconds      int          `json:"step_seconds" doc:"how long each point is: 60 or 3600"`
	SweptUntil       time.Time    `json:"swept_until,omitzero" doc:"minutes before it have been counted, those from it on not yet, or not by all shards"`
	LatenessBoundsMS []int64      `json:"lateness_bounds_ms" doc:"upper bounds of the buckets of lateness; the last bucket has none"`
	DurationBoundsMS []int64      `json:"duration_bounds_ms" doc:"upper bounds of the buckets of duration; the last bucket has none"`
	Points           []StatsPoint `json:"points" doc:"the oldest first; a minute or hour without runs has none"`
	Totals           StatsCounts  `json:"totals" doc:"of all points"`
}

// StatsPoint is a minute or an hour.
type StatsPoint struct {
	At time.Time `json:"at" doc:"its beginning"`
	StatsCounts
}

// StatsCounts is how many runs there were, by what became of them.
type StatsCounts struct {
	Due       int            `json:"due" doc:"runs whose nominal time lies in it"`
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`
	Cancelled int            `json:"cancelled"`
	Skipped   int            `json:"skipped" doc:"missed fires that catch-up dropped in one go are one run"`
	Dead      int            `json:"dead"`
	Unknown   int            `json:"unknown"`
	Open      int            `json:"open" doc:"had not ended when they were looked at last, and are looked at again"`
	Unended   int            `json:"unended" doc:"had not ended within 5 hours of the minute, and are not looked at again"`
	Retries   int            `json:"retries" doc:"attempts after the first"`
	Lateness  StatsHistogram `json:"lateness" doc:"from the nominal time, or the end of a wait in line, to the start of the first attempt"`
	Duration  StatsHistogram `json:"duration" doc:"from the start of the last attempt to the end of the run"`
}

// StatsHistogram is how durations are spread.
type StatsHistogram struct {
	Count   int     `json:"count" doc:"runs of which it is known"`
	Buckets []int   `json:"buckets" doc:"how many lie above the bound before and up to the bucket's own"`
	P50     float64 `json:"p50_ms,omitempty" doc:"estimate, from the buckets, of what half of them do not exceed; none where count is 0"`
	P90     float64 `json:"p90_ms,omitempty" doc:"estimate of what 90% do not exceed"`
	P99     float64 `json:"p99_ms,omitempty" doc:"estimate of what 99% do not exceed"`
}
