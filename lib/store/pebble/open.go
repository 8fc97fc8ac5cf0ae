package pebble

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// What Open and a failed engine give, besides the port's own errors.
var (
	// ErrLocked says that another process, or another Store in this one, has the folder open.
	ErrLocked = errors.New("the store folder is in use by another Belfry")
	// ErrFormat says that the folder is not one that this version can read: written by a newer one, or no store at all.
	ErrFormat = errors.New("not a store that this version can open")
	// ErrFailed says that the disk refused a write or a sync. What was under way then may or may not be there; the engine
	// has written nothing since, and answers nothing more until it is opened again.
	ErrFailed = errors.New("the store has stopped because its disk failed")
)

// Config is for Open.
type Config struct {
	Dir        string           // the folder, created when absent; it belongs to the store alone
	FS         vfs.FS           // nil: the host's
	Now        func() time.Time // the clock that expiry goes by; nil: time.Now
	Logger     *slog.Logger     // nil: slog.Default()
	CacheBytes int64            // blocks kept in memory, besides up to 64 MiB of what is not yet in tables; 0: 64 MiB
	SweepEvery time.Duration    // between two passes over what has expired; 0: a minute

	memTable uint64 // 0: 16 MiB; tests make it small so that little data reaches the disk's tables
	headSets int    // of the headers of what was written last; 0: 8,192, 8 MiB; tests make it small so that it is too small
}

const memTable = 16 << 20

// Store is a store.Store in a folder.
type Store struct {
	db   *pebble.DB
	lock *pebble.Lock
	log  *slog.Logger
	now  func() time.Time

	calls  sync.RWMutex // held for reading by every call under way
	closed atomic.Bool

	queue     sync.Mutex    // held for moments only
	gathering *group        // the requests that the goroutine that decides will take next
	wake      chan struct{} // tells it that there is one
	acks      chan *group   // from it, in the order of the log, to the one that waits for the disk

	seed    maphash.Seed
	stripes [stripes]atomic.Pointer[commit] // by partition: the last commit that wrote to one of them
	slots   [slots]atomic.Uint64            // by key: the number of the last commit that wrote one of them
	synced  atomic.Uint64                   // commits up to this number are on the disk

	disk   diskCount
	damage damage

	failOnce sync.Once
	failed   chan struct{} // closed when the disk has failed
	failure  error         // set before failed is closed

	stopSweep context.CancelFunc
	sweeping  sync.WaitGroup
	writing   sync.WaitGroup
	exporting sync.WaitGroup
}

var _ store.Engine = (*Store)(nil)

// format is what this version writes; the marker file holds it in decimal. It grows with any change that an older version
// would misread, Pebble's own format included.
const (
	format     = 1
	marker     = "BELFRY-STORE"
	pebbleKind = pebble.FormatTableFormatV6
)

// Open opens the folder, or makes it.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir == "" {
		return nil, invalid.Missing("store", "a folder, as in pebble:///var/lib/belfry")
	}
	if cfg.FS == nil {
		cfg.FS = vfs.Default
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 64 << 20
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = time.Minute
	}
	if cfg.memTable == 0 {
		cfg.memTable = memTable
	}
	if cfg.headSets == 0 {
		cfg.headSets = headSets
	}
	s, err := open(cfg)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", cfg.Dir, err)
	}
	return s, nil
}

func open(cfg Config) (_ *Store, err error) {
	if err := makeDir(cfg.FS, cfg.Dir); err != nil {
		return nil, err
	}
	if err := refusedUnlocked(cfg.FS, cfg.Dir); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(cfg.Dir, cfg.FS)
	if err != nil {
		return nil, lockedBy(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	known, err := checkFormat(cfg.FS, cfg.Dir)
	if err == nil && !known {
		err = makeFormat(cfg.FS, cfg.Dir)
	}
	if err != nil {
		return nil, err
	}
	if err := checkLogs(cfg.FS, cfg.Dir); err != nil {
		return nil, err
	}
	before, err := checkList(cfg.FS, cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		lock: lock, log: cfg.Logger, now: cfg.Now,
		gathering: newGroup(0), wake: make(chan struct{}, 1), acks: make(chan *group),
		seed: maphash.MakeSeed(), failed: make(chan struct{}),
	}
	var db *pebble.DB
	err = s.unlessFailed(func() (err error) {
		db, err = pebble.Open(cfg.Dir, s.options(cfg))
		return refusedBy(err)
	})
	if err != nil {
		return nil, err
	}
	s.db = db
	if !before.Exists || before.FormatMajorVersion < pebbleKind {
		// Pebble begins its first log before it has raised a new store's format, without the marks that tell a damaged log
		// from one that ends: so a second one is begun before anything is written.
		if err := s.unlessFailed(s.db.Flush); err != nil {
			return nil, err
		}
	}
	if err := s.broken(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopSweep = cancel
	d := &decider{s: s, heads: newHeads(cfg.headSets, s.seed), round: 1}
	s.writing.Go(func() { s.decideAll(d) })
	s.writing.Go(s.awaitAll)
	s.sweeping.Go(func() { s.sweepLoop(ctx, cfg.SweepEvery) })
	return s, nil
}

// blockSize is what a table reads, keeps in memory and compresses at once. The indexes of tables name each block: at Pebble's own 4 KiB
// those of ten million schedules would take more than the whole cache.
const blockSize = 16 << 10

func (s *Store) options(cfg Config) *pebble.Options {
	o := &pebble.Options{
		FS:                          &guard{FS: cfg.FS, s: s},
		Lock:                        s.lock,
		CacheSize:                   cfg.CacheBytes + 2*int64(cfg.memTable), // Pebble counts what is not yet in tables as well
		FormatMajorVersion:          pebbleKind,
		Logger:                      pebbleLog{s},
		MemTableSize:                cfg.memTable,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       10, // of what is written here most is written over within seconds: merged later, there is less of it
		L0StopWritesThreshold:       32,
	}
	// A damaged block refuses the reads that need it, and only those: the rest of the store still answers.
	o.EventListener = &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) { s.note(cfg.FS.PathBase(info.Path), info.Details) },
		BackgroundError: func(err error) {
			s.log.Error("the store's background work failed", "error", firstLine(s.met(err)))
		},
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockSize
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	return o
}

// Skew is 0: the store's clock is this host's.
func (s *Store) Skew() time.Duration { return 0 }

// Failed is closed when the disk has failed: the program should say so and end, since no call will succeed any more.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Close waits for calls under way, writes what is only in the log into tables, so that the next Open has nothing to replay,
// and releases the folder.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stopSweep()
	// Behind this lock no call is under way and none can begin: they find the store closed.
	s.calls.Lock()
	s.calls.Unlock() //nolint:staticcheck // a barrier: an export does not hold the lock, since what it calls may call the store
	s.exporting.Wait()
	s.sweeping.Wait()
	close(s.wake)
	err := s.unlessFailed(func() error {
		s.writing.Wait()
		return errors.Join(s.db.Flush(), s.db.Close(), s.lock.Close())
	})
	if err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

// enter begins a call: it is refused on a closed or failed store, and counted until leave.
func (s *Store) enter(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	s.calls.RLock()
	err := ctx.Err()
	if s.closed.Load() {
		err = store.ErrClosed
	} else if broken := s.broken(); broken != nil {
		err = broken
	}
	if err != nil {
		s.calls.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.calls.RUnlock() }

// lockedBy gives an error of the lock. A lock file that cannot be made is the folder's fault; what else goes wrong here is that somebody
// holds it, which the system says by one of two numbers, and Pebble, when it is this process, by none.
func lockedBy(err error) error {
	var path *fs.PathError
	var number syscall.Errno
	if errors.As(err, &path) || errors.As(err, &number) && number != syscall.EAGAIN && number != syscall.EACCES {
		return err
	}
	return ErrLocked
}

// makeDir makes the folder durable as well: without a sync of its parents, a power cut could take the whole store with all
// that it had acknowledged.
func makeDir(fsys vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fsys.PathDir(d) {
		if info, err := fsys.Stat(d); err == nil {
			if !info.IsDir() {
				return fmt.Errorf("%s is a file, want a folder", d)
			}
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made = append(made, d)
		if d == fsys.PathDir(d) {
			break
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range made {
		if err := syncDir(fsys, fsys.PathDir(d)); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(fsys vfs.FS, dir string) error {
	f, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkFormat reads the marker; known is false for a new folder, which has none.
func checkFormat(fsys vfs.FS, dir string) (known bool, err error) {
	raw, err := readFile(fsys, fsys.PathJoin(dir, marker))
	if errors.Is(err, fs.ErrNotExist) {
		return false, checkUnmarked(fsys, dir)
	}
	if err != nil {
		return false, err
	}
	raw = raw[:min(len(raw), 64)]
	found, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	switch {
	case err != nil || found < 1:
		return false, fmt.Errorf("%w: its marker %s holds %q, want a number", ErrFormat, marker, raw)
	case found > format:
		return false, fmt.Errorf("%w: it has format %d, written by a newer Belfry, and this one knows formats up to %d: "+
			"use the newer version", ErrFormat, found, format)
	}
	return true, nil
}

// checkUnmarked refuses a folder that has what Pebble makes, and no marker: it is none of ours, since ours have it first.
func checkUnmarked(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ofStore(name) {
			return fmt.Errorf("%w: it holds %s, but no marker %s: want an empty folder, or a store's", ErrFormat, name, marker)
		}
	}
	return nil
}

// makeFormat writes the marker into a new folder, before Pebble writes anything there.
func makeFormat(fsys vfs.FS, dir string) error {
	path := fsys.PathJoin(dir, marker)
	f, err := fsys.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, strconv.Itoa(format)+"\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}
