package wire

import (
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// RetryQuestion asks what a retry policy comes to. What is left out has its default: of Retry that of jobs.
type RetryQuestion struct {
	Retry   job.Retry
	Takes   schedule.Duration // each attempt
	Clients int
	Seed    uint64
}

// RetryPlan is what a retry policy comes to where every attempt fails. Times are seconds from the beginning of the first attempt.
type RetryPlan struct {
	Retry    job.Retry         `json:"retry" doc:"the policy, with its defaults"`
	Takes    schedule.Duration `json:"duration" doc:"how long each attempt takes until it fails"`
	Clients  int               `json:"clients" doc:"how many fail first at the same instant"`
	Seed     uint64            `json:"seed" doc:"seed of all chance"`
	Attempts []RetryAttempt    `json:"attempts" doc:"in their order"`
	GivesUp  Percentiles       `json:"gives_up" doc:"when the last attempt has failed"`
	Peak     RetryPeak         `json:"peak" doc:"the most retries within a tenth of a second"`
	Crowd    []RetryBin        `json:"crowd" doc:"the most retries within a tenth of a second, by stretches of time; each stretch is longer than the one before by the same factor"`
}

// RetryAttempt is one attempt of all clients.
type RetryAttempt struct {
	Attempt       int         `json:"attempt" doc:"1 for the first"`
	Begins        Percentiles `json:"begins" doc:"when it begins"`
	WithoutJitter float64     `json:"begins_without_jitter" doc:"when it would begin if every wait were the mean of its bounds, in seconds"`
	Peak          int         `json:"peak" doc:"the most clients that begin it within a tenth of a second; all of them without jitter"`
}

// RetryPeak is the worst tenth of a second of all retries.
type RetryPeak struct {
	WithJitter    int `json:"with_jitter" doc:"retries in it"`
	WithoutJitter int `json:"without_jitter" doc:"retries in it if every wait were the mean of its bounds"`
}

// Percentiles tell when something happens to clients, in seconds.
type Percentiles struct {
	Least float64 `json:"least" doc:"the earliest that can be, in seconds"`
	P10   float64 `json:"p10" doc:"one client in ten is no later"`
	P50   float64 `json:"p50" doc:"half of the clients are no later"`
	P90   float64 `json:"p90" doc:"nine clients in ten are no later"`
	Most  float64 `json:"most" doc:"the latest that can be"`
}

// RetryBin is a stretch of time.
type RetryBin struct {
	From          float64 `json:"from" doc:"its beginning, in seconds"`
	To            float64 `json:"to" doc:"its end"`
	WithJitter    int     `json:"with_jitter" doc:"the most retries within a tenth of a second that begins in it"`
	WithoutJitter int     `json:"without_jitter" doc:"the most if every wait were the mean of its bounds"`
}
