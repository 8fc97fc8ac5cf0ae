package timer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Buckets is into how many parts each minute's timers are cut.
const Buckets = 64

// Kind is what a timer wakes up for.
type Kind byte

// The kinds, as they stand in sort keys.
const (
	Fire    Kind = 'f' // a job's schedule: Nominal and the fires up to To are to be claimed
	Request Kind = 'r' // a run on demand is to be claimed
	Batch   Kind = 'b' // several runs on demand are, which were asked for together: see Singles
	Check   Kind = 'c' // look after a run that has not ended
)

// Together is how many runs one timer stands for at the most: with so many it costs each of them little, and a page of timers stays
// small in memory.
const Together = 16

// Timer is a durable wake-up. Its Wake places it in a minute's bucket; Nominal is the time that it stands for.
type Timer struct {
	Wake       int64 // Unix ms, in the key
	Nominal    int64 // Unix ms, in the key: of a Fire the first that it stands for, else of the run
	Kind       Kind
	Tenant     string
	Job        string // of a Fire
	Generation int64  // of a Fire
	Run        run.ID // of a Request or Check
	Mark       uint64 // of a Batch, drawn at random: it tells it from all others
	Version    uint64 // of its item
	Attempt    uint64 // of its item

	body
}

type body struct {
	To     int64    `cbor:"2,keyasint,omitempty"` // of a Fire, Unix ms: the last; grows only
	Create *run.Run `cbor:"3,keyasint,omitempty"` // of a Request: the run as it is to be
	Direct bool     `cbor:"4,keyasint,omitempty"` // of a Request or Batch: whoever armed it sends the runs itself; of a Fire: whoever armed it claims its fires itself; only the sweeps look
	Batch  []member `cbor:"5,keyasint,omitempty"` // of a Batch
	Owed   int64    `cbor:"6,keyasint,omitempty"` // of a Fire, Unix ms: it stands for missed fires up to this one alone, which all are to run; 0: for whatever comes

	// Of a Request that is a callback with a window. All of one window have the same Nominal.
	Window int64 `cbor:"10,keyasint,omitempty"` // ms
	Joined bool  `cbor:"11,keyasint,omitempty"` // it stands for all of its window that were found, and is as any other from here on
}

// member is a run of a batch.
type member struct {
	ID  string   `cbor:"1,keyasint"`
	Run *run.Run `cbor:"2,keyasint,omitempty"` // as it is to be
}

// record writes the record of a timer, by hand as a run's is, and read reads it.
func (b *body) record() []byte {
	size := 16
	if b.Create != nil {
		size += b.Create.Size()
	}
	for i := range b.Batch {
		size += 24 + len(b.Batch[i].ID) + b.Batch[i].Run.Size()
	}
	w := record.Write(size)
	b.writeFields(&w)
	return w.Stored()
}

func (b *body) writeFields(w *record.Writer) {
	w.Int(2, b.To)
	if b.Create != nil {
		outer := w.Open(3)
		b.Create.WriteFields(w)
		w.Close(outer)
	}
	w.Bool(4, b.Direct)
	if len(b.Batch) > 0 {
		w.Array(5, len(b.Batch))
		for i := range b.Batch {
			b.Batch[i].writeFields(w)
		}
	}
	w.Int(6, b.Owed)
	w.Int(10, b.Window)
	w.Bool(11, b.Joined)
}

func (m *member) writeFields(w *record.Writer) {
	outer := w.Element()
	w.AlwaysText(1, m.ID)
	if m.Run != nil {
		inner := w.Open(2)
		m.Run.WriteFields(w)
		w.Close(inner)
	}
	w.Close(outer)
}

func (m *member) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			m.ID = string(s.Text())
		case 2:
			m.Run = new(run.Run)
			m.Run.ReadFields(s)
		default:
			s.Fail()
		}
	}
}

func (b *body) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 2:
			b.To = s.Int()
		case 3:
			b.Create = new(run.Run)
			b.Create.ReadFields(s)
		case 4:
			b.Direct = s.Bool()
		case 5:
			b.Batch = make([]member, s.Array())
			for i := range b.Batch {
				b.Batch[i].readFields(s)
			}
		case 6:
			b.Owed = s.Int()
		case 10:
			b.Window = s.Int()
		case 11:
			b.Joined = s.Bool()
		default:
			s.Fail()
		}
	}
}

func read(stored []byte) (body, error) {
	var b body
	s := record.Scan(stored)
	if b.readFields(&s); s.Whole() {
		return b, nil
	}
	var other body
	err := record.Decode(stored, &other)
	return other, err
}

// NewFire is the timer of a job's fire at nominal, to wake at wake.
func NewFire(tenant, name string, generation, nominal, wake int64) Timer {
	return Timer{Wake: wake, Kind: Fire, Tenant: tenant, Job: name, Generation: generation, Nominal: nominal, body: body{To: nominal}}
}

// Owing is a fire's timer, to wake at wake, that stands for nothing beyond the fires up to owed. It was decided of these that they are missed and
// are to run.
func (t Timer) Owing(nominal, owed, wake int64) Timer {
	owing := NewFire(t.Tenant, t.Job, t.Generation, nominal, wake)
	owing.Owed = owed
	return owing
}

// NewRequest is the timer of a run on demand.
func NewRequest(r run.Run, wake int64, direct bool) Timer {
	return Timer{Wake: wake, Kind: Request, Tenant: r.Tenant, Run: r.ID, Nominal: r.ID.Nominal, body: body{Create: &r, Direct: direct}}
}

// NewWaiting is the timer of a callback with a window, which waits for others: all that lie in one window lie together in one bucket.
func NewWaiting(r run.Run, window time.Duration, wake int64) Timer {
	t := NewRequest(r, wake, false)
	t.Window = window.Milliseconds()
	return t
}

// Waits tells whether it is a callback that no other has joined for good yet. Nothing is done by it before that.
func (t *Timer) Waits() bool { return t.Window != 0 && !t.Joined && t.Create != nil }

// NewBatch is the timer of runs on demand of one tenant that wake together; mark is drawn at random. Two batches may share runs, so it
// does not go by them: whoever finds a batch standing where another was to be has armed nothing.
func NewBatch(runs []*run.Run, wake int64, direct bool, mark uint64) Timer {
	members := make([]member, len(runs))
	for i, r := range runs {
		members[i] = member{ID: r.ID.String(), Run: r}
	}
	first := runs[0]
	return Timer{Wake: wake, Kind: Batch, Tenant: first.Tenant, Mark: mark, Nominal: first.ID.Nominal, body: body{Batch: members, Direct: direct}}
}

// AppendSingles appends the requests that a Batch stands for, each as if it had a timer of its own.
func (t *Timer) AppendSingles(to []Timer) []Timer {
	for i := range t.Batch {
		r := t.Batch[i].Run
		to = append(to, Timer{Wake: t.Wake, Kind: Request, Tenant: t.Tenant, Run: r.ID, Nominal: r.ID.Nominal, Version: t.Version, Attempt: t.Attempt,
			body: body{Create: r, Direct: t.Direct}})
	}
	return to
}

// NewCheck is a timer that looks after a run at wake.
func NewCheck(tenant string, id run.ID, wake int64) Timer {
	return Timer{Wake: wake, Kind: Check, Tenant: tenant, Run: id, Nominal: id.Nominal}
}

// Keep is how long after its wake-up a timer stays before it may be cleaned up. Cleaning up by expiry costs nothing where
// deleting costs a write; the time must be longer than the ticks may ever be away, since an unread timer must not go.
const Keep = 60 * 24 * time.Hour

// Put gives the write of the timer: absent for a new one, under its version for one that was read.
func (t Timer) Put(attempt uint64) (store.Op, error) {
	return store.Op{Kind: store.Put, Key: t.Key(), If: store.At(store.Item{Version: t.Version}), Value: t.record(),
		Expires: time.UnixMilli(t.Wake).Add(Keep), Attempt: attempt}, nil
}

// Bucket is which of the buckets the timer lies in: by its job, or by its run or mark for the others, so that a busy job's runs
// spread. Callbacks with a window are to be found together: they lie by the job that is called.
func (t Timer) Bucket() int {
	if t.Kind == Fire {
		return BucketOf(t.Tenant, t.Job)
	}
	if t.Window != 0 {
		return BucketOf(t.Tenant, t.Run.Job)
	}
	if t.Kind == Batch {
		return int(t.Mark % Buckets)
	}
	var room [320]byte
	return int(xxhash.Sum64(t.Run.Append(append(append(room[:0], t.Tenant...), '#'))) % Buckets)
}

// BucketOf is the bucket of a job's fire timers.
func BucketOf(tenant, name string) int { return int(job.Hash(tenant, name) % Buckets) }

// Key is where the timer stands.
func (t Timer) Key() store.Key {
	var room [384]byte
	sort := append(record.AppendTime(room[:0], t.Wake), '#', byte(t.Kind), '#')
	sort = append(append(sort, t.Tenant...), '#')
	switch t.Kind {
	case Fire:
		sort = append(sort, t.Job...)
	case Batch:
		sort = strconv.AppendUint(sort, t.Mark, 16)
	default:
		sort = t.Run.Append(sort)
	}
	sort = strconv.AppendInt(append(sort, '#'), t.Generation, 10)
	sort = strconv.AppendInt(append(sort, '#'), t.Nominal, 10)
	return store.Key{Partition: Partition(Minute(t.Wake), t.Bucket()), Sort: string(sort)}
}

// Minute is the minute of a Unix ms, counted from the epoch.
func Minute(ms int64) int64 {
	return (ms - ms%60_000) / 60_000 // ms is never negative: times before 1970 are refused at the door
}

// Partition is a minute's bucket.
func Partition(minute int64, bucket int) string {
	var room [24]byte
	out := record.AppendPadded(append(room[:0], "due#"...), minute, 10)
	return string(record.AppendPadded(append(out, '#'), int64(bucket), 2))
}

// SortFrom is the lowest sort key of timers that wake at ms or later.
func SortFrom(ms int64) string {
	var room [24]byte
	return string(record.AppendTime(room[:0], ms))
}

// FromSortTime is the wake-up, Unix ms, that a sort key begins with; 0 where it begins with none.
func FromSortTime(sort string) int64 {
	wake, err := strconv.ParseInt(sort[:min(len(sort), 15)], 10, 64)
	if err != nil {
		return 0
	}
	return wake
}

// FromSort reads what the sort key alone tells of a timer: id is the name of a Fire's job, else the text of a run's ID, and
// nominal is Unix ms; of a Batch id is its mark.
func FromSort(sort string) (kind Kind, tenant, id string, nominal int64, ok bool) {
	parts, ok := cut(sort)
	if !ok {
		return 0, "", "", 0, false
	}
	nominal, err := strconv.ParseInt(parts[5], 10, 64)
	return Kind(parts[1][0]), parts[2], parts[3], nominal, err == nil
}

// cut parts a sort key: wake, kind, tenant, id, generation, nominal.
func cut(sort string) (parts [6]string, ok bool) {
	rest := sort
	for i := range parts {
		parts[i], rest, ok = strings.Cut(rest, "#")
		if ok != (i < len(parts)-1) {
			return parts, false
		}
	}
	return parts, len(parts[1]) == 1
}

// FromItem reads a timer.
func FromItem(item store.Item) (Timer, error) {
	parts, ok := cut(item.Sort)
	if !ok {
		return Timer{}, fmt.Errorf("timer %s: %w", item.Key, record.ErrBroken)
	}
	t := Timer{Kind: Kind(parts[1][0]), Tenant: parts[2], Version: item.Version, Attempt: item.Attempt}
	var err error
	if t.Wake, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return Timer{}, fmt.Errorf("timer %s: %w", item.Key, record.ErrBroken)
	}
	generation, err := strconv.ParseInt(parts[4], 10, 64)
	if err != nil {
		return Timer{}, fmt.Errorf("timer %s: %w", item.Key, record.ErrBroken)
	}
	if t.Nominal, err = strconv.ParseInt(parts[5], 10, 64); err != nil {
		return Timer{}, fmt.Errorf("timer %s: %w", item.Key, record.ErrBroken)
	}
	switch t.Kind {
	case Fire:
		t.Job, t.Generation = parts[3], generation
	case Batch:
		if t.Mark, err = strconv.ParseUint(parts[3], 16, 64); err != nil {
			return Timer{}, fmt.Errorf("timer %s: %w", item.Key, record.ErrBroken)
		}
	case Request, Check:
		if t.Run, err = run.ParseID(parts[3]); err != nil {
			return Timer{}, fmt.Errorf("timer %s: %w: %w", item.Key, record.ErrBroken, err)
		}
	default:
		return Timer{}, fmt.Errorf("timer %s: kind %q: %w", item.Key, parts[1], record.ErrNewer)
	}
	if t.body, err = read(item.Value); err != nil {
		return Timer{}, fmt.Errorf("timer %s: %w", item.Key, err)
	}
	if t.Create != nil {
		t.Create.ID, t.Create.Tenant = t.Run, t.Tenant
	}
	if t.Kind == Batch && len(t.Batch) == 0 {
		return Timer{}, fmt.Errorf("timer %s stands for nothing: %w", item.Key, record.ErrBroken)
	}
	for i := range t.Batch {
		m := &t.Batch[i]
		id, err := run.ParseID(m.ID)
		if err != nil || m.Run == nil {
			return Timer{}, fmt.Errorf("timer %s: run %q: %w", item.Key, m.ID, errors.Join(record.ErrBroken, err))
		}
		m.Run.ID, m.Run.Tenant = id, t.Tenant
	}
	return t, nil
}

// NextCheck is the next regular look after a run that has not ended, beyond a horizon (Unix ms). The instants depend on the
// run alone: its nominal time, 1, 2, 4, 8 and 16 minutes after it, and every 15 minutes from there. So all who arm one arrive at
// the same timer, and their chains stay one.
func NextCheck(tenant string, id run.ID, horizon int64) Timer {
	const minute, every = int64(60_000), 15 * int64(60_000)
	wake := id.Nominal
	for step := minute; wake <= horizon && step <= 16*minute; step *= 2 {
		wake = id.Nominal + step
	}
	if wake <= horizon {
		wake += ((horizon-wake)/every + 1) * every
	}
	return NewCheck(tenant, id, wake)
}

// MaxCheckGap is how far apart regular looks are: every unended run that is not waiting for a retry of its own has a timer
// no further ahead of the horizon.
const MaxCheckGap = 16 * time.Minute
