package sim

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
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

	ctx   context.Context // ends with the world
	began time.Time       // of the bubble's clock
	sched *scheduler
	store *memory.Store
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
}

// Handlers are the names of handler targets that every host knows.
var Handlers = []string{"work", "slow", "fail", "mixed"}

// Now is the true time.
func (w *World) Now() time.Time { return w.Mix.Start.Add(time.Since(w.began)) }

// Rand is a stream of random numbers of its own: what one draws changes nothing for others. The same name gives the same stream.
func (w *World) Rand(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(w.Seed, h.Sum64()))
}
