package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ErrNotFound says that there is no such job, or no such generation of it any more.
var ErrNotFound = errors.New("no such job")

// ErrSchedule says that a stored schedule does not compile.
var ErrSchedule = errors.New("the schedule cannot be used")

// Edition is one generation of a definition, ready for use. It never changes.
type Edition struct {
	Generation int64
	Def        Definition
	Schedule   Fires // nil for a job on demand

	// Own says of a step's edition that its payload is its own, whatever the run brings.
	Own bool
	// Computed says of it that its payload is made by expressions, when an attempt starts.
	Computed bool

	jitter Jitter // nil: spread

	making sync.Once
	made   any
	fault  error

	keying   sync.Once
	keys     Keys
	keyFault error
}

// Keys are the keys by which runs of a job pass gates; nil for a gate that they pass without one.
type Keys struct {
	Own   *expression.Key   // of the job's overlap
	Gates []*expression.Key // of each of Definition.Gates
}

// The fields that have keys.
const OverlapKeyField = "overlap.key"

// GateKeyField is that of the n-th gate of a definition, counted from 0.
func GateKeyField(n int) string { return fmt.Sprintf("gates[%d].key", n) }

// OfPayload is the first field whose key reads the payload of a run, "" for none.
func (k Keys) OfPayload() string {
	if k.Own != nil && k.Own.ReadsPayload() {
		return OverlapKeyField
	}
	for n, key := range k.Gates {
		if key != nil && key.ReadsPayload() {
			return GateKeyField(n)
		}
	}
	return ""
}

// Keys are those of the definition. An error is an *expression.Error: a newer version took what this one does not.
func (e *Edition) Keys() (Keys, error) {
	e.keying.Do(func() {
		parse := func(text string) (key *expression.Key) {
			if text != "" && e.keyFault == nil {
				key, e.keyFault = expression.ParseKey(text)
			}
			return key
		}
		e.keys.Own = parse(e.Def.Overlap.Key)
		for _, use := range e.Def.Gates {
			e.keys.Gates = append(e.keys.Gates, parse(use.Key))
		}
	})
	return e.keys, e.keyFault
}

// Made is what is made of the edition once, by whoever asks first, and kept with it: all who ask want the same.
func (e *Edition) Made(of func() (any, error)) (any, error) {
	e.making.Do(func() { e.made, e.fault = of() })
	return e.made, e.fault
}

// Jitter is a fire's share of its job's jitter, from 0 to longest. Nominal is Unix ms. It is the same however often it is asked for.
type Jitter func(tenant, name string, nominal int64, longest time.Duration) time.Duration

// spread is the Jitter of every program.
func spread(tenant, name string, nominal int64, longest time.Duration) time.Duration {
	share := Hash(tenant, name+"#"+strconv.FormatInt(nominal, 10)) % (uint64(longest.Milliseconds()) + 1)
	return time.Duration(share) * time.Millisecond
}

// Fires is what the protocol asks of a schedule; *schedule.Schedule in every program.
type Fires interface {
	Next(after time.Time) (time.Time, bool)
	Last(from, upTo time.Time) (time.Time, bool)
	Count(from, upTo time.Time, limit int) (int, bool)
}

// Book reads jobs, and remembers editions: a generation is immutable, so a remembered one needs no second look. The newest
// generation of a job is not remembered as such; whoever needs to know it reads the job.
type Book struct {
	// Jitter may be set before the book is used. Default: nil, by a hash of the fire.
	Jitter Jitter

	store   store.Store
	compile func(schedule.Spec) (Fires, error)

	mu    sync.Mutex
	young map[editionKey]*Edition // two generations of a cache: when the young one is full it becomes the old one
	old   map[editionKey]*Edition
	seen  map[editionKey]Job // by name, generation 0
	since time.Time          // when seen was last emptied
}

type editionKey struct {
	tenant, name string
	generation   int64
}

// remembered is how many editions each half of the cache holds: some kilobytes each.
const remembered = 4096

// Remembered is of how many jobs a book has the definitions at hand, at the most.
const Remembered = 2 * remembered

// NewBook reads from the store. compile is Compile but for tests of what a broken schedule does.
func NewBook(s store.Store, compile func(schedule.Spec) (Fires, error)) *Book {
	return &Book{store: s, compile: compile, young: map[editionKey]*Edition{}, seen: map[editionKey]Job{}}
}

// Compile is how programs make Fires of a schedule.
func Compile(spec schedule.Spec) (Fires, error) {
	compiled, err := spec.Compile()
	if err != nil {
		return nil, err // not the nil *Schedule, which would be no nil Fires
	}
	return compiled, nil
}

// Jobs reads jobs as they stand now, strongly consistent, in the order of the names. What does not exist, and what was
// deleted, has Generation 0 or Deleted set; what cannot be read has Broken set.
func (b *Book) Jobs(ctx context.Context, tenant string, names ...string) ([]Job, error) {
	keys := make([]store.Key, len(names))
	for i, name := range names {
		keys[i] = Key(tenant, name)
	}
	items, err := b.store.Get(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	jobs := make([]Job, len(names))
	for i, item := range items {
		if jobs[i], err = FromItem(tenant, names[i], item); err != nil {
			jobs[i] = Job{Tenant: tenant, Name: names[i], Version: item.Version, Broken: err} // the others are not to suffer for it
			continue
		}
		b.Saw(jobs[i])
	}
	return jobs, nil
}

// Saw remembers a job as it was read or written, for Known.
func (b *Book) Saw(j Job) {
	key := editionKey{tenant: j.Tenant, name: j.Name}
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.Generation == 0 || j.Deleted {
		delete(b.seen, key)
		return
	}
	if len(b.seen) >= remembered {
		clear(b.seen)
	}
	b.seen[key] = j
}

// knownFor is how old a job may be that Known gives.
const knownFor = time.Minute

// Known gives a job as it was last seen here, and reads it where it was not: enough to tell that it exists, never to decide
// which generation is in force.
//
// now is the caller's clock: what was seen longer than knownFor ago is read again.
func (b *Book) Known(ctx context.Context, tenant, name string, now time.Time) (Job, error) {
	key := editionKey{tenant: tenant, name: name}
	b.mu.Lock()
	if now.Sub(b.since) > knownFor {
		clear(b.seen)
		b.since = now
	}
	j, ok := b.seen[key]
	b.mu.Unlock()
	if ok {
		return j, nil
	}
	return b.Job(ctx, tenant, name)
}

// Job reads one job as it stands now.
func (b *Book) Job(ctx context.Context, tenant, name string) (Job, error) {
	jobs, err := b.Jobs(ctx, tenant, name)
	if err != nil {
		return Job{}, err
	}
	return jobs[0], jobs[0].Broken
}

// FromItem reads a job; an item that is not there gives Generation 0.
func FromItem(tenant, name string, item store.Item) (Job, error) {
	j := Job{Tenant: tenant, Name: name}
	if !item.Exists() {
		return j, nil
	}
	if err := record.Decode(item.Value, &j); err != nil {
		return Job{}, fmt.Errorf("job %s: %w", name, err)
	}
	j.Tenant, j.Name, j.Version = tenant, name, item.Version
	return j, nil
}

// Edition gives the definition of a generation: from memory, else from the job, else from where past ones are kept.
func (b *Book) Edition(ctx context.Context, tenant, name string, generation int64) (*Edition, error) {
	key := editionKey{tenant, name, generation}
	if e := b.recall(key); e != nil {
		return e, nil
	}
	if err := b.Foresee(ctx, tenant, Ref{name, generation}); err != nil {
		return nil, err
	}
	if e := b.recall(key); e != nil {
		return e, nil
	}
	items, err := b.store.Get(ctx, Key(tenant, name), PastKey(tenant, name, generation))
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", name, err)
	}
	j, err := FromItem(tenant, name, items[0])
	if err != nil {
		return nil, err
	}
	if j.Generation == generation && !j.Deleted {
		return b.Newest(j)
	}
	past, err := pastFromItem(name, generation, items[1])
	if err != nil {
		return nil, err
	}
	return b.keep(key, past.Def)
}

// Ref names one generation of a job.
type Ref struct {
	Name       string
	Generation int64
}

// Foresee remembers definitions before Edition is asked for each: in one cheap read for many jobs, where one by one costs a request each.
// A stale read does no harm, since what it shows of a generation is all that there will ever be. What is not of the newest generation, or
// cannot be used, is left to Edition.
func (b *Book) Foresee(ctx context.Context, tenant string, refs ...Ref) error {
	wanted := make(map[store.Key]Ref, len(refs))
	keys := make([]store.Key, 0, len(refs))
	for _, r := range refs {
		key := Key(tenant, r.Name)
		if _, twice := wanted[key]; !twice && b.recall(editionKey{tenant, r.Name, r.Generation}) == nil {
			wanted[key] = r
			keys = append(keys, key)
		}
	}
	for some := range slices.Chunk(keys, store.MaxKeys) {
		items, err := b.store.Peek(ctx, some...)
		if err != nil {
			return fmt.Errorf("read jobs: %w", err)
		}
		for i, item := range items {
			r := wanted[some[i]]
			if j, err := FromItem(tenant, r.Name, item); err == nil && j.Generation == r.Generation && !j.Deleted {
				_, _ = b.Newest(j) // what does not compile, Edition says
			}
		}
	}
	return nil
}

// past is a replaced definition, as it is kept.
type past struct {
	Def   Definition `cbor:"1,keyasint"`
	Until int64      `cbor:"2,keyasint"` // Unix ms
}

func pastFromItem(name string, generation int64, item store.Item) (p past, err error) {
	if !item.Exists() {
		return past{}, fmt.Errorf("generation %d of %s: %w", generation, name, ErrNotFound)
	}
	if err := record.Decode(item.Value, &p); err != nil {
		return past{}, fmt.Errorf("generation %d of %s: %w", generation, name, err)
	}
	return p, nil
}

// Until is when a replaced generation ended, in Unix ms, also one that the job does not list any more. ErrNotFound for one
// that was never replaced, or whose record is gone.
func (b *Book) Until(ctx context.Context, j Job, generation int64) (int64, error) {
	if until, ok := j.Until(generation); ok {
		return until, nil
	}
	items, err := b.store.Get(ctx, PastKey(j.Tenant, j.Name, generation))
	if err != nil {
		return 0, err
	}
	p, err := pastFromItem(j.Name, generation, items[0])
	return p.Until, err
}

// Newest gives the definition that a job holds, without reading.
func (b *Book) Newest(j Job) (*Edition, error) {
	key := editionKey{j.Tenant, j.Name, j.Generation}
	if e := b.recall(key); e != nil {
		return e, nil
	}
	return b.keep(key, j.Def)
}

// Draft compiles a definition that is not written yet: it may never be, so nothing is remembered.
func (b *Book) Draft(def Definition) (Fires, error) {
	if def.Schedule == nil {
		return nil, nil
	}
	return b.compile(*def.Schedule)
}

func (b *Book) keep(key editionKey, def Definition) (*Edition, error) {
	def.On.PauseAfter = def.PauseAfter
	e := &Edition{Generation: key.generation, Def: def, jitter: b.Jitter}
	if def.Schedule != nil {
		var err error
		if e.Schedule, err = b.compile(*def.Schedule); err != nil {
			return nil, fmt.Errorf("schedule of %s, generation %d: %w: %w", key.name, key.generation, ErrSchedule, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.young) >= remembered {
		b.old, b.young = b.young, make(map[editionKey]*Edition, remembered)
	}
	b.young[key] = e
	return e, nil
}

func (b *Book) recall(key editionKey) *Edition {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.young[key]; e != nil {
		return e
	}
	e := b.old[key]
	if e != nil && len(b.young) < remembered {
		b.young[key] = e
	}
	return e
}

// Put gives the write of the job under the version that was read.
func (j Job) Put(attempt uint64) (store.Op, error) {
	value, err := record.Encode(j)
	if err != nil {
		return store.Op{}, err
	}
	op := store.Op{Kind: store.Put, Key: Key(j.Tenant, j.Name), If: store.At(store.Item{Version: j.Version}), Value: value, Attempt: attempt}
	if j.Deleted {
		op.Expires = time.UnixMilli(j.Updated).Add(KeepPast)
	}
	return op, nil
}

// KeepPast is how long the tombstone of a deleted job is kept, and a replaced definition at least.
const KeepPast = 400 * 24 * time.Hour

// MaxUnderWay is for how long a run may be under way at the most: that of a workflow whose timeout is the longest.
const MaxUnderWay = 5 * 365 * 24 * time.Hour

// KeptBeyond is for how long what a run goes by is kept after the last instant at which the run may end, and its retention: it may have waited before
// its start.
const KeptBeyond = 60 * 24 * time.Hour

// PutPast gives the write that keeps the job's present definition for runs of its generation after an edit at now: until those that were under way
// have ended, and are kept no longer. longest is for how long a run may be under way.
func (j Job) PutPast(now time.Time, longest time.Duration, attempt uint64) (store.Op, error) {
	value, err := record.Encode(past{Def: j.Def, Until: now.UnixMilli()})
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: PastKey(j.Tenant, j.Name, j.Generation), Value: value,
		Expires: now.Add(max(KeepPast, longest+j.Def.Kept()+KeptBeyond)), Attempt: attempt}, nil
}

// Due is when the run of a fire may start, in Unix ms: its nominal time and its share of the jitter, which is the same
// for every tick that comes upon the fire.
func (e *Edition) Due(tenant, name string, nominal int64) int64 {
	if e.Def.Schedule == nil || e.Def.Schedule.Jitter <= 0 {
		return nominal
	}
	share := e.jitter
	if share == nil {
		share = spread
	}
	return nominal + share(tenant, name, nominal, e.Def.Schedule.Jitter.Std()).Milliseconds()
}
