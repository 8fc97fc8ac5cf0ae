package cost

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// units is what a store has consumed, in DynamoDB's units, and what lies in it because of that.
type units struct {
	Writes, Reads float64
	Nothing       float64 // of the reads, those of queries and of keys in batches that found nothing
	Shared        float64 // of the writes, those that a minute and its shards cost, however many runs there are
	Index         float64 // of the shared: those that list runs by time
	GBMonths      float64 // that items will take until they expire
	Kept          float64 // of these, those of what is kept for a run's retention
	Requests      map[string]int
}

func (u units) minus(o units) units {
	left := units{Writes: u.Writes - o.Writes, Reads: u.Reads - o.Reads, Nothing: u.Nothing - o.Nothing, Shared: u.Shared - o.Shared, Index: u.Index - o.Index,
		GBMonths: u.GBMonths - o.GBMonths, Kept: u.Kept - o.Kept,
		Requests: map[string]int{}}
	for name, n := range u.Requests {
		if n -= o.Requests[name]; n != 0 {
			left.Requests[name] = n
		}
	}
	return left
}

// meter is a store that counts units by the Amazon DynamoDB Developer Guide, "DynamoDB read and write operations" and "Item sizes and
// formats": a write takes a unit for each KB begun of the larger of the item before and after, twice that in a transaction; so does
// one whose condition fails, of the item that stands. A strong read takes a unit for each 4 KB begun, a cheap one half; a query of the sum of
// what it reads; nothing found is still the least.
type meter struct {
	store.Store
	look store.Store // asked what stands before a write, which is not counted
	now  func() time.Time

	mu   sync.Mutex
	used units
	lies map[store.Key]lying // items that expire
}

type lying struct {
	bytes   int
	expires time.Time
}

func newMeter(over store.Store, now func() time.Time) *meter {
	return &meter{Store: over, look: over, now: now, used: units{Requests: map[string]int{}}, lies: map[store.Key]lying{}}
}

// read gives what was consumed up to now.
func (m *meter) read() units {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used.minus(units{})
}

// sizeOf is the size of an item as lib/store/dynamo lays it out: names and values of p, s, n, v, a and ttl.
func sizeOf(k store.Key, value []byte, version, attempt uint64, expires time.Time) int {
	size := 1 + len(k.Partition) + 1 + len(k.Sort) + 1 + number(version) + 1 + len(value)
	if attempt != 0 {
		size += 1 + number(attempt)
	}
	if seconds := store.ExpirySeconds(expires); seconds != 0 {
		size += 3 + number(uint64(seconds))
	}
	return size
}

// number is the size of one: a byte for two digits, without the zeros at its end, and one more.
func number(n uint64) int {
	digits := 0
	for n > 0 && n%10 == 0 {
		n /= 10
	}
	for ; n > 0; n /= 10 {
		digits++
	}
	return (digits+1)/2 + 1
}

func itemSize(i store.Item) int {
	if !i.Exists() {
		return 0
	}
	return sizeOf(i.Key, i.Value, i.Version, i.Attempt, i.Expires)
}

func opSize(op store.Op, version uint64) int {
	if op.Kind != store.Put {
		return 0
	}
	return sizeOf(op.Key, op.Value, version, op.Attempt, op.Expires)
}

func upTo(size, unit int) float64 { return float64(max(1, (size+unit-1)/unit)) }

func (m *meter) count(request string, reads, nothing float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Requests[request]++
	m.used.Reads += reads
	m.used.Nothing += nothing
}

// standing is what an op meets. Nothing else writes that item at this moment in what is counted here, or it would meet a conflict.
func (m *meter) standing(ctx context.Context, op store.Op) store.Item {
	items, err := m.look.Get(ctx, op.Key)
	if err != nil || len(items) != 1 {
		return store.Item{Key: op.Key}
	}
	return items[0]
}

// wrote counts an op that was tried as a write of its own (factor 1) or in a transaction (2).
func (m *meter) wrote(op store.Op, before store.Item, done bool, factor float64) {
	size := itemSize(before)
	if done {
		size = max(size, opSize(op, before.Version+1))
	}
	cost := factor * upTo(size, 1024)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Writes += cost
	if shared(op.Key.Partition) {
		m.used.Shared += cost
	}
	if indexed(op.Key.Partition) {
		m.used.Index += cost
	}
	if done {
		m.lie(op, before.Version+1)
	}
}

// shared tells of cursors of shards, what sweeps remember and count, and the index by time that they write. What is listed alone is a run's.
func shared(partition string) bool {
	return strings.HasPrefix(partition, "shard#") || strings.HasPrefix(partition, "swept#") || strings.HasPrefix(partition, "sum#") || strings.HasPrefix(partition, "owed#") || indexed(partition)
}

// indexed tells of the index by time that sweeps write: it is one partition of its tenant.
func indexed(partition string) bool {
	return strings.HasPrefix(partition, "ran#") && strings.HasSuffix(partition, "#0")
}

// kept tells of what is there for as long as a run is kept: the run, what lists it, its dead letter.
func kept(partition string) bool {
	return strings.HasPrefix(partition, "run#") || strings.HasPrefix(partition, "ran#") || strings.HasPrefix(partition, "dead#")
}

// overhead is what DynamoDB adds to each item that it stores.
const overhead = 100

const month = 30 * 24 * time.Hour

// lie keeps account of what will be paid for storing an item until it expires. The caller holds mu.
func (m *meter) lie(op store.Op, version uint64) {
	now := m.now()
	months := func(l lying) float64 {
		return float64(l.bytes) / (1 << 30) * max(0, l.expires.Sub(now).Hours()) / month.Hours()
	}
	more := -months(m.lies[op.Key])
	delete(m.lies, op.Key)
	if op.Kind == store.Put && !op.Expires.IsZero() {
		l := lying{opSize(op, version) + overhead, op.Expires}
		m.lies[op.Key] = l
		more += months(l)
	}
	m.used.GBMonths += more
	if kept(op.Key.Partition) {
		m.used.Kept += more
	}
}

func (m *meter) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	before := make([]store.Item, len(ops))
	for i, op := range ops {
		before[i] = m.standing(ctx, op)
	}
	versions, err := m.Store.Write(ctx, ops...)
	switch {
	case len(ops) == 0:
	case len(ops) == 1:
		m.single(ops[0], before[0], err == nil)
	default:
		var first []store.Item // puts under Any are read first
		for i, op := range ops {
			if op.Kind == store.Put && op.If.IsAny() {
				first = append(first, before[i])
			}
			if op.Kind != store.Check || !op.If.IsAny() {
				m.wrote(op, before[i], err == nil, 2)
			}
		}
		m.got(first, 1)
		m.count("TransactWriteItems", 0, 0)
	}
	return versions, err
}

// single counts a write of one op; a check is a strong read.
func (m *meter) single(op store.Op, before store.Item, done bool) {
	switch {
	case op.Kind == store.Check && op.If.IsAny():
	case op.Kind == store.Check:
		m.count("GetItem", upTo(itemSize(before), 4096), 0)
	default:
		m.wrote(op, before, done, 1)
		name := map[bool]string{true: "UpdateItem", false: "PutItem"}[op.If.IsAny()]
		if op.Kind == store.Delete {
			name = "DeleteItem"
		}
		m.count(name, 0, 0)
	}
}

func (m *meter) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	before := make([]store.Item, len(ops))
	for i, op := range ops {
		before[i] = m.standing(ctx, op)
	}
	verdicts, err := m.Store.WriteEach(ctx, ops...)
	for i, op := range ops {
		m.single(op, before[i], err == nil && verdicts[i].Err == nil)
	}
	return verdicts, err
}

func (m *meter) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := m.Store.Get(ctx, keys...)
	m.got(items, 1)
	return items, err
}

func (m *meter) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := m.Store.Peek(ctx, keys...)
	m.got(items, 0.5)
	return items, err
}

func (m *meter) got(items []store.Item, factor float64) {
	seen := map[store.Key]bool{}
	var reads, nothing float64
	for _, i := range items {
		if seen[i.Key] { // asked for once
			continue
		}
		seen[i.Key] = true
		reads += factor * upTo(itemSize(i), 4096)
		if !i.Exists() {
			nothing += factor
		}
	}
	switch len(seen) {
	case 0:
	case 1:
		m.count("GetItem", reads, 0)
	default:
		m.count("BatchGetItem", reads, nothing)
	}
}

func (m *meter) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := m.Store.Query(ctx, r)
	if err == nil && (r.To == "" || r.From < r.To) {
		bytes := 0
		for _, i := range page.Items {
			bytes += itemSize(i)
		}
		nothing := 0.0
		if bytes == 0 {
			nothing = 1
		}
		m.count("Query", upTo(bytes, 4096), nothing)
	}
	return page, err
}
