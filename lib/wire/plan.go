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
	Seed     uint64            `json:"seed" doc:"of chance"`
	Tries    string            `json:"tries" doc:"in plain English"`
	Attempts []RetryAttempt    `json:"attempts" doc:"in their order"`
	GivesUp  Spread            `json:"gives_up" doc:"when the last attempt has failed"`
	Peak     RetryPeak         `json:"peak" doc:"the most that try again within a tenth of a second"`
	Crowd    []RetryBin        `json:"crowd" doc:"how many clients try again in each stretch of time; the stretches grow, each by the same factor"`
}

// RetryAttempt is one attempt of all clients.
type RetryAttempt struct {
	Attempt int     `json:"attempt" doc:"1 for the first"`
	Begins  Spread  `json:"begins" doc:"when it begins"`
	Alike   float64 `json:"alike" doc:"when it would begin if all clients waited alike, in seconds"`
	Peak    int     `json:"peak" doc:"the most clients that begin it within a tenth of a second; all of them if they waited alike"`
}

// RetryPeak is the worst tenth of a second of all retries.
type RetryPeak struct {
	Spread int `json:"spread" doc:"retries in it"`
	Alike  int `json:"alike" doc:"those that would be in the worst one if all clients waited alike"`
}

// Spread tells of instants, in seconds.
type Spread struct {
	Least float64 `json:"least" doc:"the earliest that can be, in seconds"`
	P10   float64 `json:"p10" doc:"one client in ten is no later"`
	P50   float64 `json:"p50" doc:"half of the clients are no later"`
	P90   float64 `json:"p90" doc:"nine clients in ten are no later"`
	Most  float64 `json:"most" doc:"the latest that can be"`
}

// RetryBin is a stretch of time.
type RetryBin struct {
	From   float64 `json:"from" doc:"its beginning, in seconds"`
	To     float64 `json:"to" doc:"its end"`
	Spread int     `json:"spread" doc:"clients that try again in it"`
	Alike  int     `json:"alike" doc:"those that would if all waited alike"`
}
