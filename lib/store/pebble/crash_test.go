package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// TestP1_Fault50_nothing_unsynced_is_told holds the log's sync open and looks who answers: nobody who has seen the write may,
// since a power cut at that moment takes it.
func TestP1_Fault50_nothing_unsynced_is_told(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := newDisk(mem)
	s := openOn(t, d)
	ctx := t.Context()
	if _, err := s.Write(ctx, store.Op{Kind: store.Put, Key: at("before"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	d.set(func(op errorfs.Op) error {
		if isSync(op) && ofLog(op) {
			<-open
		}
		return nil
	})
	own := store.Op{Kind: store.Put, Key: at("a"), If: store.Absent, Value: []byte("v"), Attempt: 3}
	foreign := own
	foreign.Attempt = 4
	each := func(ctx context.Context, op store.Op) error {
		verdicts, err := s.WriteEach(ctx, op)
		if err == nil {
			err = verdicts[0].Err
		}
		return err
	}
	calls := map[string]func(ctx context.Context) error{
		"the writer":           func(ctx context.Context) error { _, err := s.Write(ctx, own); return err },
		"its second try":       func(ctx context.Context) error { _, err := s.Write(ctx, own); return err },
		"a conflict":           func(ctx context.Context) error { _, err := s.Write(ctx, foreign); return err },
		"a conflict of each":   func(ctx context.Context) error { return each(ctx, foreign) },
		"a second try of each": func(ctx context.Context) error { return each(ctx, own) },
		"get":                  func(ctx context.Context) error { _, err := s.Get(ctx, at("z"), at("a")); return err },
		"peek":                 func(ctx context.Context) error { _, err := s.Peek(ctx, at("a")); return err },
		"query": func(ctx context.Context) error {
			_, err := s.Query(ctx, store.Range{Partition: "p"})
			return err
		},
		"an export": func(ctx context.Context) error {
			return s.Export(ctx, func(store.Item) error { return nil })
		},
		"a check": func(ctx context.Context) error {
			_, err := s.Write(ctx, store.Op{Kind: store.Check, Key: at("a"), If: store.Version(1)})
			return err
		},
	}
	first := make(chan error, 1)
	go func() { first <- calls["the writer"](ctx) }()
	visible(t, s, at("a"))
	var wg sync.WaitGroup
	for name, call := range calls {
		wg.Go(func() {
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if err := call(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s was answered before the sync: %v", name, err)
			}
		})
	}
	wg.Wait()
	// What nobody writes is told all the same, whoever else of its partition is on the way: one of several, since keys share slots.
	long, cancel := context.WithTimeout(ctx, 5*time.Minute)
	for _, sort := range []string{"before", "b", "c", "d"} {
		wg.Go(func() {
			if _, err := s.Get(long, at(sort)); err == nil {
				cancel() // the others may share the slot of the one that is written
			}
		})
	}
	wg.Wait()
	if long.Err() == context.DeadlineExceeded {
		t.Error("whoever reads other keys waits for the sync as well")
	}
	cancel()
	select {
	case err := <-first:
		t.Errorf("the first writer was answered before the sync: %v", err)
		first <- err
	default:
	}
	cut := openOn(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	items, err := cut.Get(ctx, at("a"), at("before"))
	mustNot(t, err)
	if items[0].Exists() || !items[1].Exists() {
		t.Errorf("after the power cut: %+v; the test is about a write that is lost, and one that is not", items)
	}
	mustNot(t, cut.Close())
	close(open)
	mustNot(t, <-first)
	for name, call := range calls {
		if err := call(ctx); err != nil && store.AsConflict(err) == nil {
			t.Errorf("%s, after the sync: %v", name, err)
		}
	}
	mustNot(t, s.Close())
}

// TestP1_Fault50_power_cuts cuts the power at random moments under load, keeping none, some or all of what was not synced:
// what was acknowledged, and what any reader was shown, is there afterwards, and writes of two items are whole.
func TestP1_Fault50_power_cuts(t *testing.T) {
	random := rand.New(rand.NewPCG(50, 1))
	mem := vfs.NewCrashableMem()
	for round := range 12 {
		mem = powerCut(t, mem, random, []int{0, 50, 100}[round%3])
	}
}

// TestP1_Fault50_a_new_folder_is_durable cuts the power after the first write into a folder whose parents are new as well.
func TestP1_Fault50_a_new_folder_is_durable(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, err := Open(Config{Dir: "/new/below/store", FS: mem})
	mustNot(t, err)
	_, err = s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("a")})
	mustNot(t, err)
	cut := mem.CrashClone(vfs.CrashCloneCfg{})
	mustNot(t, s.Close())
	s, err = Open(Config{Dir: "/new/below/store", FS: cut})
	mustNot(t, err)
	items, err := s.Get(t.Context(), at("a"))
	if err != nil || !items[0].Exists() {
		t.Errorf("after the power cut: %+v, %v", items, err)
	}
	mustNot(t, s.Close())
}

// told is what callers were told of each counter: at least this version stands.
type told struct {
	sync.Mutex
	versions map[store.Key]uint64
}

func (w *told) tell(k store.Key, version uint64) {
	w.Lock()
	defer w.Unlock()
	w.versions[k] = max(w.versions[k], version)
}

func powerCut(t *testing.T, mem *vfs.MemFS, random *rand.Rand, kept int) *vfs.MemFS {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := Open(Config{Dir: "store", FS: mem, memTable: 64 << 10})
	mustNot(t, err)
	witness := &told{versions: map[store.Key]uint64{}}
	pair := func(i int) (a, b store.Key) {
		return store.Key{Partition: fmt.Sprint("left", i), Sort: "x"}, store.Key{Partition: fmt.Sprint("right", i), Sort: "x"}
	}
	enough := make(chan struct{}, 1000)
	var wg sync.WaitGroup
	for i := range 6 {
		a, b := pair(i % 3)
		wg.Go(func() {
			for ctx.Err() == nil {
				items, err := s.Get(ctx, a, b)
				if err != nil {
					return
				}
				witness.tell(a, items[0].Version)
				witness.tell(b, items[1].Version)
				value := []byte(fmt.Sprintf("%0200d", items[0].Version+1))
				versions, err := s.Write(ctx,
					store.Op{Kind: store.Put, Key: a, If: store.At(items[0]), Value: value},
					store.Op{Kind: store.Put, Key: b, If: store.At(items[1]), Value: value})
				if c := store.AsConflict(err); c != nil {
					witness.tell(c.Standing.Key, c.Standing.Version)
				} else if err == nil {
					witness.tell(a, versions[0])
					witness.tell(b, versions[1])
				}
				select {
				case enough <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 50 + random.IntN(400) {
		<-enough
	}
	// First what was told, then the cut: what is told in between may be lost or not.
	witness.Lock()
	must := map[store.Key]uint64{}
	for k, v := range witness.versions {
		must[k] = v
	}
	witness.Unlock()
	after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: random})
	cancel()
	wg.Wait()
	mustNot(t, s.Close())

	s, err = Open(Config{Dir: "store", FS: after})
	if err != nil {
		t.Fatalf("open after the cut: %v", err)
	}
	for i := range 3 {
		a, b := pair(i)
		items, err := s.Get(t.Context(), a, b)
		mustNot(t, err)
		for _, item := range items {
			if item.Version < must[item.Key] {
				t.Errorf("%q stands at version %d, but %d had been told", item.Key, item.Version, must[item.Key])
			}
			if want := fmt.Sprintf("%0200d", item.Version); item.Exists() && string(item.Value) != want {
				t.Errorf("%q, version %d, holds %q", item.Key, item.Version, item.Value)
			}
		}
		if items[0].Version != items[1].Version {
			t.Errorf("half a write: versions %d and %d", items[0].Version, items[1].Version)
		}
	}
	mustNot(t, s.Close())
	return after
}

// TestFault49_disk_failures lets the disk refuse at different places under load: no write is acknowledged that is not there
// after a restart, everyone gets an answer, and the engine then refuses by name.
func TestFault49_disk_failures(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(errorfs.Op) bool
		with  error
	}{
		"full disk, in the log":       {func(op errorfs.Op) bool { return ofLog(op) && op.Kind == errorfs.OpFileWrite }, syscall.ENOSPC},
		"failed sync of the log":      {func(op errorfs.Op) bool { return ofLog(op) && isSync(op) }, syscall.EIO},
		"full disk, in a new file":    {func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate }, syscall.ENOSPC},
		"full disk, everywhere":       {func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }, syscall.ENOSPC},
		"failed sync, everywhere":     {isSync, syscall.EIO},
		"failed sync, not of the log": {func(op errorfs.Op) bool { return isSync(op) && !ofLog(op) }, syscall.EIO},
		"full disk, not in the log":   {func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && !ofLog(op) }, syscall.ENOSPC},
		"a log that cannot be renewed": {func(op errorfs.Op) bool {
			return ofLog(op) && (op.Kind == errorfs.OpRename || op.Kind == errorfs.OpCreate)
		}, syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			d := newDisk(mem)
			s, err := Open(Config{Dir: "store", FS: d, memTable: 64 << 10})
			mustNot(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			witness := &told{versions: map[store.Key]uint64{}}
			acked := make(chan struct{}, 10_000)
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					for n := 0; ; n++ {
						k := store.Key{Partition: fmt.Sprint(i, ",", n%50), Sort: "x"}
						items, err := s.Get(ctx, k)
						if err == nil {
							witness.tell(k, items[0].Version)
							_, err = s.Write(ctx, store.Op{Kind: store.Put, Key: k, If: store.At(items[0]), Value: make([]byte, 1000)})
						}
						if err != nil {
							if !errors.Is(err, ErrFailed) {
								t.Errorf("a caller was told: %v", err)
							}
							return
						}
						witness.tell(k, items[0].Version+1)
						select {
						case acked <- struct{}{}:
						default:
						}
					}
				})
			}
			for range 50 {
				<-acked
			}
			d.set(func(op errorfs.Op) error {
				if c.fails(op) {
					return c.with
				}
				return nil
			})
			wg.Wait()
			<-s.Failed()
			_, err = s.Get(ctx, at("a"))
			refused(t, err)
			_, err = s.Query(ctx, store.Range{Partition: "p"})
			refused(t, err)
			_, err = s.Write(ctx, store.Op{Kind: store.Put, Key: at("a")})
			refused(t, err)
			_, err = s.WriteEach(ctx, store.Op{Kind: store.Put, Key: at("a")})
			refused(t, err)
			refused(t, s.Close())

			again := openOn(t, mem.CrashClone(vfs.CrashCloneCfg{}))
			for k, version := range witness.versions {
				items, err := again.Get(ctx, k)
				mustNot(t, err)
				if items[0].Version < version {
					t.Errorf("%q stands at version %d, but %d had been told", k, items[0].Version, version)
				}
			}
			mustNot(t, again.Close())
		})
	}
}

// TestFault49_disk_full_while_opening lets the disk fill up at each point of opening a new folder, and one with a log to be
// replayed: Open says so, or gives a store.
func TestFault49_disk_full_while_opening(t *testing.T) {
	used := vfs.NewCrashableMem()
	s := openOn(t, used)
	_, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("a"), Value: make([]byte, 1000)})
	mustNot(t, err)
	for name, before := range map[string]*vfs.MemFS{"new": vfs.NewCrashableMem(), "used": used} {
		opened := false
		for room := 0; !opened; room++ {
			mem := before.CrashClone(vfs.CrashCloneCfg{})
			d := newDisk(mem)
			var n atomic.Int32
			d.set(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && int(n.Add(1)) > room {
					return syscall.ENOSPC
				}
				return nil
			})
			s, err := Open(Config{Dir: "store", FS: d, Logger: slog.New(slog.DiscardHandler)})
			switch {
			case err == nil:
				opened = true
				_ = s.Close() // the disk is still full
			case errors.Is(err, ErrLocked) && room > 0 || room > 500:
				t.Fatalf("%s, %d changes: %v", name, room, err)
			}
			if name == "used" {
				again := openOn(t, mem.CrashClone(vfs.CrashCloneCfg{}))
				items, err := again.Get(t.Context(), at("a"))
				if err != nil || !items[0].Exists() {
					t.Errorf("%s, %d changes: afterwards %+v, %v", name, room, items, err)
				}
				mustNot(t, again.Close())
			}
		}
	}
	mustNot(t, s.Close())
}

// TestFault49_no_file_to_open lets a process have no file left for a while: the store waits for one, since nothing was changed, and goes on.
func TestFault49_no_file_to_open(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{"of the process": syscall.EMFILE, "of the host": syscall.ENFILE} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			d := newDisk(mem)
			s := openOn(t, d)
			var left atomic.Int64
			left.Store(5)
			d.set(func(op errorfs.Op) error {
				if (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite || op.Kind == errorfs.OpOpenDir) && left.Add(-1) >= 0 {
					return errno
				}
				return nil
			})
			_, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("a"), Value: make([]byte, 1000)})
			mustNot(t, err)
			mustNot(t, s.db.Flush())
			_, err = s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("b"), Value: make([]byte, 1000)})
			mustNot(t, err)
			if left.Load() >= 0 {
				t.Fatal("no file was opened, or its want was not met")
			}
			mustNot(t, s.broken())
			mustNot(t, s.Close())
			again := openOn(t, mem.CrashClone(vfs.CrashCloneCfg{}))
			items, err := again.Get(t.Context(), at("a"), at("b"))
			mustNot(t, err)
			for _, item := range items {
				if !item.Exists() {
					t.Errorf("%v is not there", item.Key)
				}
			}
			mustNot(t, again.Close())
		})
	}
}

// TestFault49_disk_is_left_alone holds that after the first failure the folder stays as it was, though the disk would take
// writes again: what Pebble has in memory then may rest on what was lost.
func TestFault49_disk_is_left_alone(t *testing.T) {
	d := newDisk(vfs.NewCrashableMem())
	s := openOn(t, d)
	_, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("a"), Value: make([]byte, 1000)})
	mustNot(t, err)
	var failed atomic.Bool
	changed := make(chan errorfs.Op, 100)
	d.set(func(op errorfs.Op) error {
		if failed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			changed <- op
		}
		if strings.HasSuffix(op.Path, ".sst") && isSync(op) && !failed.Swap(true) {
			return syscall.EIO
		}
		return nil
	})
	go s.db.Flush()
	<-s.Failed()
	// Past the engine's own refusal: this is what a write that was already under way would do.
	go s.db.Set([]byte("late"), nil, pebble.Sync)
	select {
	case op := <-changed:
		t.Errorf("the disk was changed after it had failed: %+v", op)
	case <-time.After(100 * time.Millisecond): // there is no signal for what must not happen
	}
	refused(t, s.Close())
}

func refused(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrFailed) {
		t.Errorf("the failed engine said %v, want ErrFailed", err)
	}
}
