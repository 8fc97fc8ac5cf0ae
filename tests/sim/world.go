package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// World is one installation of Belfry with its clients, targets and faults, inside a synctest bubble. All of it follows from Seed
// and Mix.
type World struct {
	testing.TB
	Seed   uint64
	Mix    Mix
	Judge  *oracle.Judge
	Target Target // called for every attempt, on whatever host; set before the hosts start
	Faults Faults // rates in force: Mix.Faults, and none in the calm. Changed only by an actor, between its Points

	ctx    context.Context // ends with the world
	cancel context.CancelFunc
	began  time.Time // of the bubble's clock
	sched  *scheduler
	luck   *luck

	store    *memory.Store
	chest    *chest
	lines    map[string]*line // of all hosts, where they share them
	machines []*machine
	lives    sync.WaitGroup // of hosts, dead ones too

	written   map[string]bool // partitions of timers that were ever written
	past      past
	expiries  expiries
	onChange  func(before, after store.Item)
	onEnd     func(host string, err error) // told of a life that ends with an error
	recording *Recording

	away  bool   // the store
	full  bool   // the queues
	quiet bool   // no more faults
	calls int    // of targets
	first uint64 // step after which something was known to be wrong
	ended bool   // it came to its end

	heard  *linear.Recorder // what clients asked and were told
	broken []string         // what Violate was told, judged with what the Judge found
}

// Target is what all handlers of all hosts are: it decides how long a run takes and how it ends. It runs in an actor of its own, whose
// Sleep and Point it uses; the judge is told of call and answer by the World. ctx ends with the attempt's, or with its host. The
// handler's name is call.Handler.
type Target func(ctx context.Context, a *Actor, call Call) (target.Result, error)

// Call is one call of a target.
type Call struct {
	target.Call
	Handler string // the name under which it was registered, one of Handlers
	Stale   bool   // the judge knows of a higher fence of this run: a target that remembers refuses
	Kill    func() // ends the process that calls, at once: for a payload that takes its worker with it. After a Point
}

// Handlers are the names of handler targets that every host knows.
var Handlers = []string{"work", "slow", "fail", "mixed"}

// Now is the true time.
func (w *World) Now() time.Time { return w.Mix.Start.Add(time.Since(w.began)) }

// Rand is a stream of random numbers of its own: what one draws changes nothing for others. The same name gives the same stream.
func (w *World) Rand(name string) *rand.Rand {
	return rand.New(rand.NewPCG(w.Seed, xxhash.Sum64String(name)))
}

// Violate notes what broke a promise and the judge cannot see.
func (w *World) Violate(promise, format string, args ...any) {
	w.broken = append(w.broken, promise+": "+fmt.Sprintf(format, args...))
}
