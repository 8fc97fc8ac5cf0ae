package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Kind is a kind of fault, as it is counted and switched off.
type Kind uint8

// The kinds of faults.
const (
	StoreRefused Kind = iota
	StoreThrottled
	StoreLost
	StoreLate
	StoreSlow
	StoreShort
	StoreStale
	StoreAway
	StoreGone // a write whose caller had given up on it was done all the same
	SendFailed
	SendLost
	SendUnknown
	Doubled
	Delayed
	Reordered
	ReceiveLost
	EndedEarly
	DeleteFailed
	QueueFull
	GivenUp // a message that was handed out too often
	BlobFailed
	RequestLost
	RequestDelayed
	AnswerLost
	Crashed
	Stopped
	Paused
	Stepped
	Skewed
	kinds
)

var kindNames = [kinds]string{"refused", "throttled", "lost", "late", "slow", "short", "stale", "away", "gone", "send-failed", "send-lost", "send-unknown",
	"doubled", "delayed", "reordered", "receive-lost", "ended-early", "delete-failed", "full", "given-up", "blob", "request-lost", "request-delayed", "answer-lost",
	"crash", "stop", "pause", "step", "skew"}

func (k Kind) String() string { return kindNames[k] }

// Counts are faults by kind.
type Counts [kinds]int

// Add sums up.
func (c *Counts) Add(d Counts) {
	for k := range c {
		c[k] += d[k]
	}
}

func (c Counts) String() string {
	var b strings.Builder
	for k, n := range c {
		if n > 0 {
			fmt.Fprintf(&b, "%s %d, ", Kind(k), n)
		}
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// luck decides what goes wrong. Each kind has its own stream, so that switching one off changes no draw of the others.
type luck struct {
	streams [kinds]*rand.Rand
	counts  Counts
}

func newLuck(w *World) *luck {
	l := &luck{}
	for k := range l.streams {
		l.streams[k] = w.Rand("luck " + Kind(k).String())
	}
	return l
}

// strikes tells whether a fault of a kind happens now, and counts it.
func (l *luck) strikes(k Kind, rate float64) bool {
	if rate <= 0 || l.streams[k].Float64() >= rate {
		return false
	}
	l.counts[k]++
	return true
}

// upTo draws a duration from zero to d.
func (l *luck) upTo(k Kind, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(l.streams[k].Int64N(int64(d) + 1))
}

// around draws a duration of a mean, exponentially, at least a millisecond.
func around(r *rand.Rand, mean time.Duration) time.Duration {
	return max(time.Millisecond, time.Duration(r.ExpFloat64()*float64(mean)))
}
