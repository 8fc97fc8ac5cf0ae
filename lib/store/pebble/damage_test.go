package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// TestFault49_flipped_bit_in_the_log flips one bit in what was acknowledged, before the last writes: opening must not take
// that for the end of the log and drop what follows.
func TestFault49_flipped_bit_in_the_log(t *testing.T) {
	for name, writes := range map[string]int{"in a small log": 20, "in a log of several blocks": 400} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			s := openOn(t, mem)
			safe := 0
			for n := range writes {
				op := store.Op{Kind: store.Put, Key: at(fmt.Sprint(n)), Value: bytes.Repeat([]byte{7}, 300)}
				if _, err := s.Write(t.Context(), op); err != nil {
					t.Fatal(err)
				}
				if n == writes-5 {
					safe = len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".log"))
				}
			}
			random := rand.New(rand.NewPCG(49, 1))
			for range 60 {
				clone := mem.CrashClone(vfs.CrashCloneCfg{})
				place := random.IntN(safe)
				largest(t, clone, ".log")[place] ^= 1 << random.IntN(8)
				s, err := Open(Config{Dir: "store", FS: clone, Logger: slog.New(slog.DiscardHandler)})
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "in store") {
					t.Errorf("a bit flipped at %d of %d: %v, want ErrDamaged and the folder", place, safe, err)
				}
				if err == nil {
					page, err := s.Query(t.Context(), store.Range{Partition: "p"})
					t.Logf("%d items of %d, %v", len(page.Items), writes, err)
					mustNot(t, s.Close())
				}
			}
			mustNot(t, s.Close())
		})
	}
}

// TestFault49_torn_tail leaves a part of a write behind the log's last sync, as a power cut does: it opens, with all that
// was acknowledged and nothing else.
func TestFault49_torn_tail(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	for n := range 20 {
		if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprint(n)), Value: bytes.Repeat([]byte{7}, 300)}); err != nil {
			t.Fatal(err)
		}
	}
	before := len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".log"))
	if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("torn"), Value: bytes.Repeat([]byte{7}, 3000)}); err != nil {
		t.Fatal(err)
	}
	after := len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".log"))
	if after <= before {
		t.Fatalf("the log grew from %d to %d bytes", before, after)
	}
	for torn := before; torn < after; torn += 97 {
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		log := largest(t, clone, ".log")
		clear(log[torn:])
		s := openOn(t, clone)
		page, err := s.Query(t.Context(), store.Range{Partition: "p"})
		mustNot(t, err)
		if len(page.Items) != 20 {
			t.Errorf("torn at %d of %d: %d items, want 20", torn, after, len(page.Items))
		}
		mustNot(t, s.Close())
	}
	mustNot(t, s.Close())
}

// TestFault49_flipped_bit_in_a_table flips one bit anywhere in a table: whoever opens or reads is told, or gets exactly what
// was written.
func TestFault49_flipped_bit_in_a_table(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	const items = 200
	for n := range items {
		op := store.Op{Kind: store.Put, Key: at(fmt.Sprintf("%06d", n)), Value: []byte(fmt.Sprintf("%d %0300d", n, n*n*n))}
		if _, err := s.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	mustNot(t, s.Close())
	random := rand.New(rand.NewPCG(49, 2))
	refusals := 0
	for range 60 {
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		table := largest(t, clone, ".sst")
		table[random.IntN(len(table))] ^= 1 << random.IntN(8)
		s, err := Open(Config{Dir: "store", FS: clone, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			refusals++
			continue
		}
		page, err := s.Query(t.Context(), store.Range{Partition: "p"})
		if err == nil && len(page.Items) != items {
			t.Errorf("%d items of %d, and no error", len(page.Items), items)
		}
		for n := range items {
			k := at(fmt.Sprintf("%06d", n))
			got, failed := s.Get(t.Context(), k)
			if failed != nil {
				err = failed
			} else if string(got[0].Value) != fmt.Sprintf("%d %0300d", n, n*n*n) {
				t.Errorf("%q reads as %q, and no error", k, got[0].Value)
			}
		}
		if err != nil {
			refusals++
		}
		mustNot(t, s.Close())
	}
	if refusals < 40 {
		t.Errorf("of 60 flipped bits, %d were noticed", refusals)
	}
}

// largest gives the bytes of the largest file of a kind, to be changed in place.
func largest(t *testing.T, mem *vfs.MemFS, suffix string) []byte {
	t.Helper()
	names, err := mem.List("store")
	mustNot(t, err)
	var data []byte
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			b, err := mem.UnsafeGetFileDataBuffer("store/" + name)
			mustNot(t, err)
			if len(b) > len(data) {
				data = b
			}
		}
	}
	if len(data) == 0 {
		t.Fatalf("no %s among %q", suffix, names)
	}
	return data
}
