package sim

import (
	"time"
)

// Faults are how often things go wrong: chances from 0 to 1 for each operation of their kind, or means of the time between two. The zero
// value is a world where nothing does.
type Faults struct {
	// Of each call of the store.
	Refused   float64 // nothing was done, and the caller is not told so: an unknown outcome, or a failed read
	Throttled float64 // nothing was done, and the caller is told so
	Lost      float64 // it was done, and the caller is told nothing
	Late      float64 // the caller is told nothing, and it is done up to ten minutes later
	Slow      float64 // it takes SlowFor
	SlowFor   time.Duration
	Short     float64       // a page of a query ends early
	Stale     float64       // a Peek sees what stood up to some seconds ago
	Away      time.Duration // mean time between outages of the store; 0: none
	AwayFor   time.Duration // mean length of an outage

	// Of each message.
	SendFailed   float64 // not sent, and the sender is told that it failed
	SendLost     float64 // not sent, and the sender is told nothing
	SendUnknown  float64 // sent, and the sender is told that it failed
	Doubled      float64 // sent or received twice
	Delayed      float64 // sent with a further delay of up to 15 min
	Reordered    float64 // of what one Receive takes, the order
	ReceiveLost  float64 // taken, and not received before its visibility ends
	EndedEarly   float64 // its visibility ends early
	DeleteFailed float64 // not deleted, or not extended

	Full    time.Duration // mean time between two times in which the queues are full and take nothing; 0: none
	FullFor time.Duration // mean length of such a time

	// Of each operation of the blob store.
	Blobs float64

	// Of each request of a client.
	RequestLost    float64
	AnswerLost     float64
	RequestDelayed float64 // by up to a minute

	// Of hosts: mean times between two of a host; 0: none.
	Crash    time.Duration
	CrashFor time.Duration // mean time until it is started again
	Stop     time.Duration // graceful, started again at once
	Pause    time.Duration // it stands still, and wakes
	PauseFor time.Duration // mean
	Step     time.Duration // its clock is set anew
	StepBy   time.Duration // to at most so far from the true time, before or after it
	Skew     time.Duration // clocks begin up to so much apart
	Drift    float64       // seconds a second, at most
}

// Latency is how long an operation waits for its grant while virtual time goes on: evenly from zero to Usual. Zero: all happens at once,
// in any order.
type Latency struct {
	Store, Queue, Net time.Duration
}
