package target

import (
	"io"
	"time"

	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Call is one attempt: what the target is told beside its own definition.
type Call struct {
	Tenant  string
	Run     string // the run's ID: the same on every attempt
	Job     string
	Attempt int       // from 1
	Fence   uint64    // the fencing version: grows with every attempt; a target that remembers the highest can refuse a stale call
	Nominal time.Time // the instant that the schedule asked for; told in UTC
	Payload []byte    // body, standard input, or as it is; may be empty

	// MaxResult is how many bytes of a result are kept; 0 is MaxResultBytes, and no less is taken.
	MaxResult int

	Trace trace.Context // the call's span, which what the target does goes below; zero where nobody looks

	// AtMostOnce says that a second delivery would do harm: no Idempotency-Key is sent, and nothing below may send twice.
	AtMostOnce bool

	// Log takes what a process prints and a handler logs; nil discards. Its errors are ignored, and it must not block. Call
	// never writes to it from two goroutines at once, and never after it has returned.
	Log io.Writer

	room *room.Place // for a result over MaxResultBytes
}

// most is how many bytes of a result are kept.
func (c Call) most() int { return max(c.MaxResult, MaxResultBytes) }

// MaxResultBytes is how much of an answer is kept, unless the call says more: enough for a report's summary, small enough that a worker's memory is
// bounded by its concurrency.
const MaxResultBytes = 256 << 10

// largeResults is how many results over MaxResultBytes a Set holds at once: so a worker's memory stays bounded, however many attempts it makes. Who would
// hold one more waits with what it has read, as long as its attempt may take.
const largeResults = 4

// Result is what a target answered when it succeeded.
type Result struct {
	Body        []byte // at most MaxResultBytes, or what the call says
	ContentType string // a media type, "" when the target named none
	Truncated   bool   // what a process or a service of AWS said was longer than is kept; Body is its beginning

	room *room.Place
}

// Release gives back the room that a large result takes. Who has put Body away, or drops it, calls it.
func (r Result) Release() { r.room.Give() }
