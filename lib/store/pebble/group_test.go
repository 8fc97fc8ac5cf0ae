package pebble

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

// together has the requests decided in one group, in this order.
func together(t *testing.T, s *Store, requests ...*request) {
	t.Helper()
	s.queue.Lock()
	g := s.gathering
	for _, r := range requests {
		if !g.add(r) {
			t.Fatal("the group is full")
		}
	}
	s.queue.Unlock()
	s.wake <- struct{}{}
	mustNot(t, s.await(t.Context(), &g.commit))
}

// TestGroupIsDecidedOneByOne compares what requests of one group are answered with what an engine says that takes them one by one:
// with keys of which some are too long to be remembered, and with room to remember all, few and almost none.
func TestGroupIsDecidedOneByOne(t *testing.T) {
	for _, sets := range []int{0, 4, 1} {
		t.Run(fmt.Sprintf("%d sets", sets), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(sets)))
			s, err := Open(Config{Dir: "store", FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler), SweepEvery: time.Hour, headSets: sets})
			mustNot(t, err)
			defer func() { mustNot(t, s.Close()) }()
			model := memory.New(memory.Config{Now: time.Now})
			var keys []store.Key
			for n := range 60 {
				keys = append(keys, store.Key{Partition: fmt.Sprint("p", n%7), Sort: fmt.Sprint(n) + strings.Repeat("x", n%3*60)})
			}
			conflicts, written := 0, 0
			for round := range 300 {
				// Keys that grow, as those of runs do, each for a while, and never in order.
				for n := range 5 {
					keys = append(keys, store.Key{Partition: fmt.Sprint("grows", n%2), Sort: fmt.Sprintf("%06d", 10*round+random.IntN(15))})
				}
				var requests []*request
				for range 1 + random.IntN(40) {
					ops := someOps(random, recent(keys))
					r := s.prepare(ops)
					r.each = random.IntN(2) == 0 && ops[0].Kind != store.Check
					requests = append(requests, r)
				}
				together(t, s, requests...)
				for _, r := range requests {
					if !r.each {
						versions, err := model.Write(t.Context(), r.ops...)
						same(t, r.ops, r.err, err)
						if err == nil && !reflect.DeepEqual(r.versions, versions) {
							t.Fatalf("versions %v of %+v, want %v", r.versions, r.ops, versions)
						}
						if err != nil {
							conflicts++
						}
						continue
					}
					verdicts, err := model.WriteEach(t.Context(), r.ops...)
					mustNot(t, err)
					for i, v := range verdicts {
						var said error
						if r.errs != nil {
							said = r.errs[i]
						}
						same(t, r.ops[i:i+1], said, v.Err)
						if v.Version != r.versions[i] {
							t.Fatalf("version %d of %+v, want %d", r.versions[i], r.ops[i], v.Version)
						}
						if v.Err == nil {
							written++
						}
					}
				}
			}
			for _, k := range keys {
				got, err := s.Get(t.Context(), k)
				mustNot(t, err)
				want, err := model.Get(t.Context(), k)
				mustNot(t, err)
				if got[0].Version != want[0].Version || string(got[0].Value) != string(want[0].Value) {
					t.Errorf("in the end %+v, want %+v", got[0], want[0])
				}
			}
			if conflicts < 100 || written < 100 {
				t.Errorf("%d conflicts, %d written: the test has lost its point", conflicts, written)
			}
		})
	}
}

// recent is the keys that do not grow, and the last of those that do.
func recent(keys []store.Key) (all []store.Key) {
	seen := map[store.Key]bool{}
	for _, k := range append(slices.Clone(keys[:60]), keys[max(60, len(keys)-60):]...) {
		if !seen[k] {
			seen[k], all = true, append(all, k)
		}
	}
	return all
}

// someOps gives ops that often meet each other, and at times are a second try.
func someOps(random *rand.Rand, keys []store.Key) []store.Op {
	var ops []store.Op
	for _, at := range random.Perm(len(keys))[:1+random.IntN(4)] {
		kind := store.Kind(1 + random.IntN(2))
		if random.IntN(20) == 0 && len(ops) == 0 {
			kind = store.Check
		}
		op := store.Op{Kind: kind, Key: keys[at], Value: fmt.Append(nil, random.Uint64()), Attempt: uint64(random.IntN(3))}
		switch random.IntN(5) {
		case 0:
			op.If = store.Absent
		case 1, 2:
			op.If = store.Version(1 + uint64(random.IntN(4)))
		}
		if random.IntN(3) == 0 {
			op.Expires = time.Unix(4_000_000_000+int64(random.IntN(5)), 0)
		}
		ops = append(ops, op)
		if kind == store.Check {
			break
		}
	}
	return ops
}

func same(t *testing.T, ops []store.Op, got, want error) {
	t.Helper()
	g, w := store.AsConflict(got), store.AsConflict(want)
	if (got == nil) != (want == nil) || (g == nil) != (w == nil) {
		t.Fatalf("%+v: %v, want %v", ops, got, want)
	}
	if g == nil {
		return
	}
	if g.Standing.Key != w.Standing.Key || g.Standing.Version != w.Standing.Version || string(g.Standing.Value) != string(w.Standing.Value) ||
		g.Standing.Attempt != w.Standing.Attempt || !g.Standing.Expires.Equal(w.Standing.Expires) {
		t.Fatalf("%+v met %+v, want %+v", ops, g.Standing, w.Standing)
	}
}

// TestHeadsAreExact holds what is remembered to a map of all.
func TestHeadsAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	heads, all := newHeads(4, maphash.MakeSeed()), map[string]header{}
	round, held, refused := uint32(1<<32-50), 0, 0 // rounds begin anew on the way
	for range 20_000 {
		key := appendKey(nil, "p", fmt.Sprint(random.IntN(100)))
		hash := uint64(key[len(key)-1]%16) << 32 * 0x9e3779b97f4a7c15 // many keys share a hash
		if h, ok := heads.get(hash, key); ok {
			held++
			if h != all[string(key)] {
				t.Fatalf("%s: %+v is remembered, want %+v", key, h, all[string(key)])
			}
		}
		h := header{version: random.Uint64(), expires: int64(random.IntN(3)), attempt: random.Uint64()}
		if heads.put(hash, key, h, round) {
			if got, ok := heads.get(hash, key); !ok || got != h || !heads.writtenIn(hash, key, round) {
				t.Fatalf("%s was put and is not there: %+v", key, got)
			}
		} else {
			refused++
			round++ // as the engine does: what was refused is applied
		}
		all[string(key)] = h
		if random.IntN(10) == 0 {
			round++
		}
	}
	if held < 1000 || refused == 0 {
		t.Errorf("%d were held, %d refused: the test has lost its point", held, refused)
	}
}

// TestWritesOfTheRoundAreNotForgotten: they stand nowhere else until they are applied.
func TestWritesOfTheRoundAreNotForgotten(t *testing.T) {
	heads := newHeads(1, maphash.MakeSeed())
	for n := range headWays {
		if !heads.put(uint64(n)<<40, appendKey(nil, "p", fmt.Sprint(n)), header{version: 1}, 7) {
			t.Fatalf("no room for key %d", n)
		}
	}
	if heads.put(99<<40, appendKey(nil, "p", "99"), header{version: 1}, 7) {
		t.Error("a write of the round made room for another")
	}
	if heads.put(98<<40, appendKey(nil, "p", strings.Repeat("x", headKey)), header{version: 1}, 8) {
		t.Error("a key that is too long was remembered")
	}
	if !heads.put(99<<40, appendKey(nil, "p", "99"), header{version: 1}, 8) {
		t.Error("the next round finds no room")
	}
}

// TestFloors: below a floor anything may stand, above it what was not given up does not.
func TestFloors(t *testing.T) {
	var f floors
	of := func(sort string) *part { return &part{key: appendKey(nil, "p", sort), stripe: 3} }
	tells := func(sort string, want bool) {
		t.Helper()
		if f.above(of(sort)) != want {
			t.Errorf("that nothing stands under %q is known: %t, want %t", sort, !want, want)
		}
	}
	tells("5", false)
	f.set(of("5"), true)
	tells("4", false)
	tells("5", true)
	tells("6", true)
	f.raise(3, of("4").key)
	tells("5", true)
	f.raise(3, of("55").key)
	tells("55", false)
	tells("5", false)
	tells("551", true)
	other := &part{key: appendKey(nil, "q", "9"), stripe: 3}
	if f.above(other) || f.asked(other) {
		t.Error("another partition of the stripe took the floor for its own")
	}
	f.raise(3, other.key)
	tells("551", true)
	f.raise(3, of(strings.Repeat("9", headKey)).key)
	tells("a", false)
	if f.set(of("5"), false); f.above(of("9")) || !f.asked(of("1")) {
		t.Error("a partition in which something stands above has a floor")
	}
	if f.set(of(strings.Repeat("5", headKey)), true); f.asked(of("5")) {
		t.Error("a key that is too long made a floor")
	}
}

// A part that nobody has read has round 0. Were there such a round, all that was not read in it would seem not to be there.
func TestNoRoundIsNone(t *testing.T) {
	if round := after(math.MaxUint32); round == 0 || after(round) == round {
		t.Errorf("the last round is followed by %d", round)
	}
}
