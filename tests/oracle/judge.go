package oracle

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Config is what a Judge goes by. The zero value has the defaults.
type Config struct {
	// Compile makes fires of a schedule; default: job.Compile. One that remembers spares time.
	Compile func(schedule.Spec) (job.Fires, error)

	// Clocks is how far a host that claims and starts may be from the true time; default: dispatch.MaxSkew. Hosts further away do
	// neither where the store tells the time; where it does not, this is the assumption under which P3 is judged.
	Clocks time.Duration

	// CatchUpRate is how many missed fires may start in a second; default: dispatch.DefaultCatchUpRate.
	CatchUpRate int

	// Callbacks are those of jobs that name none themselves; default: none.
	Callbacks dispatch.DefaultCallbacks

	// Most is how many violations are kept; default 20. Where one promise is broken, others follow.
	Most int
}

// AnyClock is Config.Clocks where the store tells no time and its one host has a clock that is stepped: that clock is the time then, and
// what is written down by it is held against itself.
const AnyClock = 10 * 365 * 24 * time.Hour

// Judge holds what it sees against the promises. It is not safe for concurrent use.
type Judge struct {
	cfg   Config
	found []string

	event  int // counts what it was told of: an instant in the order of things
	layout timer.Layout
	shards map[int]*shardState
	jobs   map[name]*jobState
	runs   map[store.Key]*runState
	timers map[store.Key]*stood
	keys   map[store.Key]*keyState
	dead   map[store.Key]*runState   // listed as dead letters
	marked map[store.Key]bool        // of those, which say that they were discarded
	gates  map[store.Key]*namedState // by where their definitions stand
	lasts  map[store.Key]uint64      // the versions of all else
	asked  map[int]*asking
	asks   int
	keyed  map[name]*told // by tenant and idempotency key
	called map[name]*call // by tenant and end
	taking taking         // of the last callback that came to stand for others

	redrives map[string][]*asking // by tenant: those of all that a filter chooses
	discards map[string][]*asking // by tenant
	places   []int64              // of missed fires, in order, Unix ms
}

// name names something of a tenant's.
type name struct{ tenant, name string }

// New begins with an empty store.
func New(cfg Config) *Judge {
	if cfg.Compile == nil {
		cfg.Compile = job.Compile
	}
	if cfg.Clocks == 0 {
		cfg.Clocks = dispatch.MaxSkew
	}
	if cfg.CatchUpRate == 0 {
		cfg.CatchUpRate = dispatch.DefaultCatchUpRate
	}
	if cfg.Most == 0 {
		cfg.Most = 20
	}
	return &Judge{cfg: cfg, layout: timer.Layout{Shards: 1}, shards: map[int]*shardState{}, jobs: map[name]*jobState{},
		runs: map[store.Key]*runState{}, timers: map[store.Key]*stood{}, keys: map[store.Key]*keyState{}, dead: map[store.Key]*runState{}, lasts: map[store.Key]uint64{}, gates: map[store.Key]*namedState{},
		asked: map[int]*asking{}, keyed: map[name]*told{}, called: map[name]*call{}, redrives: map[string][]*asking{}, discards: map[string][]*asking{}, marked: map[store.Key]bool{}}
}

// Violations are what was found, in that order. Each begins with the promise that was broken, such as "P2: ".
func (j *Judge) Violations() []string { return j.found }

func (j *Judge) violate(promise, format string, args ...any) {
	if len(j.found) < j.cfg.Most {
		j.found = append(j.found, promise+": "+fmt.Sprintf(format, args...))
	}
}

// Stored is told of each change of an item, in the order in which the store did them: those of one Write one after another. One that was
// not there before, or is not after, has Version 0.
func (j *Judge) Stored(at time.Time, before, after store.Item) {
	j.event++
	key := before.Key
	if after.Exists() {
		key = after.Key
		if after.Version != before.Version+1 {
			j.violate("P6", "%s went from version %d to %d", key, before.Version, after.Version)
		}
	} else if !before.Exists() {
		j.violate("P6", "%s was changed and never was there", key)
		return
	}
	kind, rest, _ := strings.Cut(key.Partition, "#")
	switch kind {
	case "run":
		j.storedRun(at, key, rest, before, after)
	case "step":
		j.storedStep(at, key, rest, before, after)
	case "due":
		j.storedTimer(at, before, after)
	case "job":
		j.storedJob(at, rest, before, after)
	case "shard":
		j.storedShard(at, before, after)
	case "idem":
		j.storedKey(at, key, rest, before, after)
	case "dead":
		j.storedLetter(rest, before, after)
	case "gates":
		j.storedDefinition(at, rest, before, after)
	case "gate":
		j.storedGate(at, key, rest, before, after)
	case "down":
		j.storedDown(key, rest, before, after)
	case "streak":
		j.storedStreak(key, rest, before, after)
	case "line":
		j.storedPlace(key, rest, before, after)
	case "meta":
		j.storedLayout(key, before, after)
	default:
		j.storedOther(key, before, after)
	}
}

// storedOther follows the versions of what has no rules of its own.
func (j *Judge) storedOther(key store.Key, before, after store.Item) {
	j.follow(key, j.lasts[key], before)
	if after.Exists() {
		j.lasts[key] = after.Version
	} else {
		delete(j.lasts, key)
	}
}

// follow holds the version that a change began from against the one that was last seen.
func (j *Judge) follow(key store.Key, last uint64, before store.Item) {
	if last != before.Version {
		j.violate("P1", "%s was at version %d, and changed from version %d", key, last, before.Version)
	}
}

func (j *Judge) storedLayout(key store.Key, before, after store.Item) {
	j.storedOther(key, before, after)
	var layout timer.Layout
	if key == timer.LayoutKey && record.Decode(after.Value, &layout) == nil && layout.Valid() {
		j.layout = layout
	}
}

func ms(at time.Time) int64 { return at.UnixMilli() }
