package faulty_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

// TestStore holds that without faults, the decorator changes nothing.
func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return faulty.New(memory.New(memory.Config{}), nil) })
}

func put(sort string) store.Op {
	return store.Op{Kind: store.Put, Key: store.Key{Partition: "p", Sort: sort}, Value: []byte("v")}
}

func stands(t *testing.T, s store.Store, sort string) bool {
	t.Helper()
	items, err := s.Get(t.Context(), put(sort).Key)
	if err != nil {
		t.Fatal(err)
	}
	return items[0].Exists()
}

func TestFaults(t *testing.T) {
	ctx, late := t.Context(), make(chan struct{})
	never := make(chan struct{})
	inner := memory.New(memory.Config{})
	faults := map[string]faulty.Fault{
		"refuse": {Refuse: store.ErrThrottled}, "lose": {Lose: store.ErrUnknown}, "late": {Late: late}, "never": {Late: never},
	}
	s := faulty.New(inner, func(_ context.Context, c faulty.Call) faulty.Fault {
		for name, fault := range faults {
			if c.Touches(func(k store.Key) bool { return k.Sort == name }) {
				return fault
			}
		}
		return faulty.Fault{}
	})
	verdicts, err := s.WriteEach(ctx, put("refuse"), put("a"), put("lose"), put("late"), put("b"), put("never"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{store.ErrThrottled, nil, store.ErrUnknown, store.ErrUnknown, nil, store.ErrUnknown} {
		if !errors.Is(verdicts[i].Err, want) || (want == nil) != (verdicts[i].Version == 1) {
			t.Errorf("op %d: %+v, want %v", i, verdicts[i], want)
		}
	}
	for name, want := range map[string]bool{"refuse": false, "a": true, "lose": true, "late": false, "b": true} {
		if got := stands(t, inner, name); got != want {
			t.Errorf("%s stands: %v, want %v", name, got, want)
		}
	}
	close(late)
	for deadline := time.Now().Add(5 * time.Minute); !stands(t, inner, "late"); {
		if time.Now().After(deadline) {
			t.Fatal("the late write never landed")
		}
	}
	if _, err := s.Write(ctx, put("c"), put("lose")); !errors.Is(err, store.ErrUnknown) || !stands(t, inner, "c") {
		t.Errorf("a write whose answer was lost: %v", err)
	}
	if _, err := s.Write(ctx, put("d"), put("refuse")); !errors.Is(err, store.ErrThrottled) || stands(t, inner, "d") {
		t.Errorf("a refused write: %v", err)
	}
	if _, err := s.Get(ctx, put("refuse").Key); !errors.Is(err, store.ErrThrottled) {
		t.Errorf("a refused get: %v", err)
	}
	if _, err := s.Query(ctx, store.Range{Partition: "p", From: "refuse"}); !errors.Is(err, store.ErrThrottled) {
		t.Errorf("a refused query: %v", err)
	}
	if got, want := s.Count(faulty.WriteEach), (faulty.Counts{Calls: 1, Items: 6}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got, want := s.Count(faulty.Write), (faulty.Counts{Calls: 2, Items: 4}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if s.SetSkew(time.Hour); s.Skew() != time.Hour {
		t.Errorf("skew %v", s.Skew())
	}
	// What is still late does not keep the store from closing.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Who closes the channel of late writes can wait until these have been done.
func TestLateWritesAreAwaited(t *testing.T) {
	ctx, late := t.Context(), make(chan struct{})
	inner := memory.New(memory.Config{})
	s := faulty.New(inner, func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{Late: late} })
	_, one := s.Write(ctx, put("a"))
	_, each := s.WriteEach(ctx, put("b"), put("c"))
	if !errors.Is(one, store.ErrUnknown) || each != nil || stands(t, inner, "a") || stands(t, inner, "b") {
		t.Fatalf("the writes gave %v and %v, want them not done yet", one, each)
	}
	close(late)
	s.Landed()
	for _, sort := range []string{"a", "b", "c"} {
		if !stands(t, inner, sort) {
			t.Errorf("%s has not landed", sort)
		}
	}
}
