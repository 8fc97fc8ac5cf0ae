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

// QueueQuestion asks how a queue with workers does. Workers and Rate must be given; what else is left out has its default.
type QueueQuestion struct {
	Workers int                `json:"workers" doc:"number of workers"`
	From    int                `json:"from" doc:"of the workers, those that are there at the beginning; 0 for all"`
	Grow    float64            `json:"grow" doc:"workers that come in a minute, until all are there; more than 0 where from is fewer than workers"`
	Batch   int                `json:"batch" doc:"runs that a worker takes at once"`
	Rate    float64            `json:"rate" doc:"arrivals a second, on average from one burst to the next"`
	AtOnce  float64            `json:"at_once" doc:"share of the runs that comes in bursts, each at one instant; the rest is a Poisson process"`
	Every   schedule.Duration  `json:"burst_every" doc:"time from one burst to the next; the first is at the beginning"`
	Service QueueService       `json:"service"`
	Shares  [3]float64         `json:"shares" doc:"of the runs with high, normal and low priority; together 1. Normal is what the others leave"`
	For     schedule.Duration  `json:"for" doc:"time that is simulated"`
	Warm    *schedule.Duration `json:"warm,omitempty" doc:"warm-up: time at the beginning that the totals leave out"`
	Seed    uint64             `json:"seed" doc:"seed of all chance"`
}

// QueueService is how long runs take.
type QueueService struct {
	Kind string            `json:"kind" enum:"constant,exponential,lognormal" doc:"distribution of durations"`
	Mean schedule.Duration `json:"mean" doc:"mean duration"`
	P99  schedule.Duration `json:"p99" doc:"one run in a hundred takes longer; only of lognormal, else 0s"`
}

// QueuePlan is how a queue with workers does. Times are seconds.
type QueuePlan struct {
	Question    QueueQuestion `json:"config" doc:"the question, with its defaults"`
	Arrived     int           `json:"arrived" doc:"runs that came"`
	Started     int           `json:"started" doc:"of them, those that started"`
	Waiting     int           `json:"waiting_at_the_end" doc:"those that did not"`
	Load        float64       `json:"load" doc:"work that comes, by what the workers can do that are there at the end; above 1 the queue grows for as long as it lasts"`
	Utilization float64       `json:"utilization" doc:"share of the workers that is busy, on average, of those that are there"`
	Batch       float64       `json:"mean_batch" doc:"runs that a worker takes at once"`
	Depth       float64       `json:"mean_depth" doc:"runs that wait, on average over time"`
	Deepest     int           `json:"deepest" doc:"the most runs that wait at once"`
	Wait        QueueWait     `json:"wait" doc:"of all priorities"`
	Ranks       [3]QueueWait  `json:"by_priority" doc:"of high, normal and low priority"`
	Theory      *QueueTheory  `json:"theory,omitempty" doc:"in the long run; left out where queueing theory has no formula for such a queue"`
	Series      []QueuePoint  `json:"series" doc:"240 stretches of the simulated time, all as long, in their order; the time that the totals leave out is in them"`
}

// QueueWait tells how long runs waited that have started, in seconds. Percentiles are right to half a percent.
type QueueWait struct {
	Runs   int     `json:"runs" doc:"how many they are; where it is 0, so is all else"`
	Mean   float64 `json:"mean" doc:"mean wait"`
	Within float64 `json:"within" doc:"the mean is right to so much, 19 times in 20; 0 where there are too few runs to say, and where chance alone does not move it: with at_once above 0, with workers that come, or with a load of 1 or more"`
	None   float64 `json:"share_that_waits_not" doc:"share of them, from 0 to 1, that did not wait"`
	P50    float64 `json:"p50" doc:"half of them waited no longer"`
	P90    float64 `json:"p90" doc:"90 % of them waited no longer"`
	P99    float64 `json:"p99" doc:"99 % of them waited no longer"`
	Max    float64 `json:"max" doc:"the longest wait"`
}

// QueueTheory is what queueing theory says of the same queue in the long run.
type QueueTheory struct {
	Name        string  `json:"name" doc:"of the formula"`
	Exact       bool    `json:"exact" doc:"the formula is exact; else it is the approximation of Allen and Cunneen"`
	Utilization float64 `json:"utilization" doc:"share of the workers that is busy, in the long run"`
	Waits       float64 `json:"share_that_waits" doc:"share of the runs that wait"`
	Wait        float64 `json:"mean_wait_seconds" doc:"mean wait, of all runs"`
	Depth       float64 `json:"mean_depth" doc:"runs that wait, on average"`

	// What is known of the waits one by one.
	P50 *float64 `json:"wait_p50,omitempty" doc:"half of the runs wait no longer, in seconds; left out but for exponential durations and one priority"`
	P90 *float64 `json:"wait_p90,omitempty" doc:"90 % of the runs wait no longer"`
	P99 *float64 `json:"wait_p99,omitempty" doc:"99 % of the runs wait no longer"`
}

// QueuePoint is a stretch of the simulated time.
type QueuePoint struct {
	At         float64  `json:"at" doc:"its beginning, in seconds"`
	Depth      float64  `json:"mean_depth" doc:"runs that wait, on average"`
	Deepest    int      `json:"deepest" doc:"the most runs that wait at once"`
	Busy       float64  `json:"busy" doc:"busy workers, on average"`
	Workers    float64  `json:"workers" doc:"workers that are there, on average"`
	Throughput float64  `json:"throughput" doc:"runs that start, a second"`
	P50        *float64 `json:"wait_p50,omitempty" doc:"half of the runs that start in it have waited no longer, in seconds; left out where none starts"`
	P99        *float64 `json:"wait_p99,omitempty" doc:"99 % of them have waited no longer"`
}

// OrderQuestion asks in which order a queue hands out messages. Workers and Rate must be given; what else is left out has its default.
type OrderQuestion struct {
	Workers  int               `json:"workers" doc:"number of workers, each of which takes one message at a time"`
	Messages int               `json:"messages" doc:"messages that are sent in all"`
	Rate     float64           `json:"rate" doc:"messages that are sent a second, on average"`
	Delayed  float64           `json:"delayed" doc:"share of the messages that are sent ahead of their time, from 0 to 1"`
	Delay    schedule.Duration `json:"longest_delay" doc:"longest delay of these messages; delays are evenly distributed from 0 on"`
	Service  QueueService      `json:"service"`
	Shares   [3]float64        `json:"shares" doc:"of the messages with high, normal and low priority; together 1. Normal is what the others leave"`
	Seed     uint64            `json:"seed" doc:"seed of all chance"`
}

// OrderPlan is in which order a queue hands out messages. Times are seconds from the beginning.
type OrderPlan struct {
	Question OrderQuestion `json:"config" doc:"the question, with its defaults"`
	Lasts    float64       `json:"lasts" doc:"when the last run has ended"`
	Ranks    [3]OrderWait  `json:"by_priority" doc:"of high, normal and low priority"`
	Events   []OrderEvent  `json:"events" doc:"what happens, in its order: at most four events of each message"`
}

// OrderWait tells how long messages were ready before they were taken, in seconds.
type OrderWait struct {
	Messages int     `json:"messages" doc:"how many they are; where it is 0, so is all else"`
	Mean     float64 `json:"mean" doc:"mean wait"`
	Max      float64 `json:"max" doc:"the longest wait"`
}

// What happens to a message.
const (
	OrderSent  = "sent"
	OrderReady = "ready"
	OrderTaken = "taken"
	OrderEnded = "ended"
)

// OrderEvent is something that happens to a message.
type OrderEvent struct {
	At       float64  `json:"at" doc:"when"`
	Message  int      `json:"message" doc:"number of the message, by when it is sent, from 1 on"`
	Event    string   `json:"event" enum:"sent,ready,taken,ended" doc:"sent: it is ready then, or where it has a due time, delayed; ready: its due time has come; taken: a worker has it; ended: its run has ended, and it is deleted"`
	Priority string   `json:"priority" enum:"high,normal,low"`
	Due      *float64 `json:"due,omitempty" doc:"of a delayed message that is sent: when it is ready"`
	Worker   int      `json:"worker,omitempty" doc:"number of the worker that has it, from 1 on; of taken and ended"`
	Turn     string   `json:"turn,omitempty" enum:"high,normal,low" doc:"of taken: the priority whose turn it was; where none of it was ready, the highest that had something went"`
}
