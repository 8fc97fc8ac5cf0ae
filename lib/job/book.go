package job

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ErrNotFound says that there is no such job, or no such generation of it any more.
var ErrNotFound = errors.New("no such job")

// Edition is one generation of a definition, ready for use. It never changes.
type Edition struct {
	Generation int64
	Def        Definition
	Schedule   Fires // nil for a job on demand
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
	store   store.Store
	compile func(schedule.Spec) (Fires, error)

	mu    sync.Mutex
	young map[editionKey]*Edition // two generations of a cache: when the young one is full it becomes the old one
	old   map[editionKey]*Edition
	seen  map[editionKey]Job // by name, generation 0
}

type editionKey struct {
	tenant, name string
	generation   int64
}

// remembered is how many editions each half of the cache holds: some kilobytes each.
const remembered = 4096

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
// deleted, has Generation 0 or Deleted set.
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
			return nil, err
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

// Known gives a job as it was last seen here, and reads it where it was not: enough to tell that it exists, never to decide
// which generation is in force.
func (b *Book) Known(ctx context.Context, tenant, name string) (Job, error) {
	b.mu.Lock()
	j, ok := b.seen[editionKey{tenant: tenant, name: name}]
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
	return jobs[0], nil
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
	if !items[1].Exists() {
		return nil, fmt.Errorf("generation %d of %s: %w", generation, name, ErrNotFound)
	}
	var def Definition
	if err := record.Decode(items[1].Value, &def); err != nil {
		return nil, fmt.Errorf("generation %d of %s: %w", generation, name, err)
	}
	return b.keep(key, def)
}

// Newest gives the definition that a job holds, without reading.
func (b *Book) Newest(j Job) (*Edition, error) {
	key := editionKey{j.Tenant, j.Name, j.Generation}
	if e := b.recall(key); e != nil {
		return e, nil
	}
	return b.keep(key, j.Def)
}

func (b *Book) keep(key editionKey, def Definition) (*Edition, error) {
	e := &Edition{Generation: key.generation, Def: def}
	if def.Schedule != nil {
		var err error
		if e.Schedule, err = b.compile(*def.Schedule); err != nil {
			return nil, fmt.Errorf("schedule of %s, generation %d: %w", key.name, key.generation, err)
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

// KeepPast is how long a replaced definition and the tombstone of a deleted job are kept: longer than any run of theirs may
// still be tried again.
const KeepPast = 400 * 24 * time.Hour

// PutPast gives the write that keeps the job's present definition for runs of its generation after an edit at now.
func (j Job) PutPast(now time.Time, attempt uint64) (store.Op, error) {
	value, err := record.Encode(j.Def)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: PastKey(j.Tenant, j.Name, j.Generation), Value: value,
		Expires: now.Add(KeepPast), Attempt: attempt}, nil
}

// Due is when the run of a fire may start, in Unix ms: its nominal time and its share of the jitter, which is the same
// for every tick that comes upon the fire.
func (e *Edition) Due(tenant, name string, nominal int64) int64 {
	if e.Def.Schedule == nil || e.Def.Schedule.Jitter <= 0 {
		return nominal
	}
	jitter := uint64(e.Def.Schedule.Jitter.Std().Milliseconds())
	return nominal + int64(Hash(tenant, name+"#"+strconv.FormatInt(nominal, 10))%(jitter+1))
}
