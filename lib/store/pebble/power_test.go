package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// TestP1_Fault50_power_cuts_while_opening cuts the power at each change of the disk that opening and closing make, and keeps of what
// was not synced each part by chance, entries of a folder out of their order too: the next start finds a store, and all that was
// acknowledged.
func TestP1_Fault50_power_cuts_while_opening(t *testing.T) {
	tables := vfs.NewCrashableMem()
	acknowledge(t, tables, 0, 100)
	log := tables.CrashClone(vfs.CrashCloneCfg{})
	s := openOn(t, log)
	for n := range 20 { // what is in the log only
		_, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprint("log", n)), Value: make([]byte, 300)})
		mustNot(t, err)
	}
	cut := log.CrashClone(vfs.CrashCloneCfg{})
	mustNot(t, s.Close())
	for name, c := range map[string]struct {
		before *vfs.MemFS
		items  int
	}{"new": {vfs.NewCrashableMem(), 0}, "with tables": {tables, 100}, "with a log": {cut, 120}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(50, uint64(c.items)))
			mem := c.before.CrashClone(vfs.CrashCloneCfg{})
			var mu sync.Mutex // one cut at a time: the choices share a source
			changes, starts := 0, 0
			d := newDisk(mem)
			d.set(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				changes++
				percents := []int{0, 30, 70, 100}
				if isSync(op) && op.Path == "store" { // the entries of the folder, of which any may be there
					percents = append(percents, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50)
				}
				for _, percent := range percents {
					again, err := Open(Config{Dir: "store", FS: mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random}),
						Logger: slog.New(slog.DiscardHandler)})
					starts++
					if err != nil {
						t.Errorf("before change %d, kind %d of %s, with %d%% kept: %v", changes, op.Kind, op.Path, percent, err)
						continue
					}
					page, err := again.Query(t.Context(), store.Range{Partition: "p", Limit: 1000})
					if err != nil || len(page.Items) != c.items {
						t.Errorf("before change %d, kind %d of %s, with %d%% kept: %d items of %d, %v", changes, op.Kind, op.Path, percent, len(page.Items), c.items, err)
					}
					mustNot(t, again.Close())
				}
				return nil
			})
			s, err := Open(Config{Dir: "store", FS: d, Logger: slog.New(slog.DiscardHandler)})
			mustNot(t, err)
			mustNot(t, s.Close())
			if changes < 10 {
				t.Errorf("only %d changes were seen", changes)
			}
			t.Logf("%d changes, %d starts", changes, starts)
		})
	}
}

// acknowledge writes some items and closes the store.
func acknowledge(t *testing.T, mem vfs.FS, from, to int) {
	t.Helper()
	s := openOn(t, mem)
	for n := from; n < to; n++ {
		_, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprintf("%06d", n)), Value: []byte(fmt.Sprintf("%d %0300d", n, n))})
		mustNot(t, err)
	}
	mustNot(t, s.Close())
}

// TestFault49_flipped_bit_in_any_file flips one bit of one file that was synced and left alone since: the start says so, or a read
// does, or all is there.
func TestFault49_flipped_bit_in_any_file(t *testing.T) {
	mem := vfs.NewCrashableMem()
	const items = 150
	for n := range 3 { // several starts: manifests of more than one record, and tables on two levels
		acknowledge(t, mem, 50*n, 50*n+50)
	}
	names, err := mem.List("store")
	mustNot(t, err)
	random := rand.New(rand.NewPCG(49, 3))
	for _, name := range names {
		data, err := mem.UnsafeGetFileDataBuffer("store/" + name)
		mustNot(t, err)
		if len(data) == 0 {
			continue // its name is all that it says
		}
		t.Run(name, func(t *testing.T) {
			refused := 0
			const flips = 40
			for range flips {
				clone := mem.CrashClone(vfs.CrashCloneCfg{})
				data, err := clone.UnsafeGetFileDataBuffer("store/" + name)
				mustNot(t, err)
				place, bit := random.IntN(len(data)), random.IntN(8)
				data[place] ^= 1 << bit
				if err := allThere(t, clone, items); err != nil {
					refused++
					if strings.Contains(err.Error(), "silent") {
						t.Errorf("bit %d of byte %d of %d: %v", bit, place, len(data), err)
					}
				}
			}
			t.Logf("%d of %d flips were noticed", refused, flips)
		})
	}
}

// allThere opens a store and reads the items that acknowledge wrote. Its error says "silent" where nobody was told of a loss.
func allThere(t *testing.T, mem vfs.FS, items int) error {
	t.Helper()
	s, err := Open(Config{Dir: "store", FS: mem, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { mustNot(t, s.Close()) }()
	page, err := s.Query(t.Context(), store.Range{Partition: "p", Limit: 1000})
	if err == nil && len(page.Items) != items {
		return fmt.Errorf("a silent loss: a query gives %d items of %d", len(page.Items), items)
	}
	var told error
	for n := range items {
		got, err := s.Get(t.Context(), at(fmt.Sprintf("%06d", n)))
		if err != nil {
			told = err
		} else if string(got[0].Value) != fmt.Sprintf("%d %0300d", n, n) {
			return fmt.Errorf("a silent loss: item %d reads as %q", n, got[0].Value)
		}
	}
	return errors.Join(err, told)
}

// TestFault49_flipped_bit_in_the_manifest flips one bit in the list of tables of a store that has flushed tables and dropped their logs
// since it was started, the last record included: a store that lost a table from its list must not open.
func TestFault49_flipped_bit_in_the_manifest(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	const items = 150
	for n := range items {
		_, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprintf("%06d", n)), Value: []byte(fmt.Sprintf("%d %0300d", n, n))})
		mustNot(t, err)
		if n%50 == 49 {
			mustNot(t, s.db.Flush())
		}
	}
	// Until the logs of what was flushed are gone, which is when a lost record would take the tables' items along.
	var stands *vfs.MemFS
	for stands == nil || logs(t, stands) > 2 {
		runtime.Gosched()
		stands = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	}
	mustNot(t, s.Close())
	names, err := stands.List("store")
	mustNot(t, err)
	for _, name := range names {
		if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		data, err := stands.UnsafeGetFileDataBuffer("store/" + name)
		mustNot(t, err)
		for place := range data {
			for how, damage := range map[string]func(data []byte){
				"flipped":   func(data []byte) { data[place] ^= 1 << (place % 8) },
				"lost from": func(data []byte) { clear(data[place:]) },
			} {
				clone := stands.CrashClone(vfs.CrashCloneCfg{})
				data, err := clone.UnsafeGetFileDataBuffer("store/" + name)
				mustNot(t, err)
				damage(data)
				if err := allThere(t, clone, items); err != nil && strings.Contains(err.Error(), "silent") {
					t.Errorf("%s byte %d of %d of %s: %v", how, place, len(data), name, err)
				}
			}
		}
		// What was written and not synced, nobody vouches for: the end of a record that a power cut tore.
		for torn := range 7 + int(data[4]) { // the first record, but for its last byte
			clone := stands.CrashClone(vfs.CrashCloneCfg{})
			f, err := clone.OpenReadWrite("store/"+name, vfs.WriteCategoryUnspecified)
			mustNot(t, err)
			_, err = f.WriteAt(data[:torn], int64(len(data)))
			mustNot(t, errors.Join(err, f.Close()))
			if err := allThere(t, clone, items); err != nil {
				t.Errorf("%d bytes of a torn record behind the end: %v", torn, err)
			}
		}
	}
}

func logs(t *testing.T, mem vfs.FS) (n int) {
	names, err := mem.List("store")
	mustNot(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			n++
		}
	}
	return n
}
