package access_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func TestTheStoreIsAskedForATokenEveryFewSecondsAtMost(t *testing.T) {
	r := newRig(t)
	text, _ := r.create(t, "default", access.Read)
	for range 600 { // a minute, ten requests a second
		if _, err := r.Check(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		r.clock.add(100 * time.Millisecond)
	}
	if got := r.reads(); got < 12 || got > 25 {
		t.Errorf("the store was asked %d times in a minute, want once every %s at least and half of that at most", got, access.CacheFor)
	}
}

// Guesses have a right form: whoever makes them up can read how.
func TestGuessesAreRememberedInBoundedMemory(t *testing.T) {
	r := newRig(t)
	guess := func(n int) error {
		_, err := r.Check(t.Context(), access.Forge(fmt.Sprintf("%016x", n), strings.Repeat("0", 43)))
		return err
	}
	for range 100 {
		if err := guess(1); !errors.Is(err, access.ErrNoToken) {
			t.Fatal(err)
		}
	}
	if got := r.reads(); got != 1 {
		t.Errorf("the store was asked %d times for one guess, want once", got)
	}
	for n := range 5000 {
		guess(n)
		if got := r.Remembered(); got > 1000 {
			t.Fatalf("after %d guesses %d are remembered, want at most 1000", n+1, got)
		}
	}
	r.clock.add(access.CacheFor)
	before := r.reads()
	guess(4999)
	if r.reads() != before+1 {
		t.Error("what was not there is never asked for again")
	}
}

// A store that does not answer says nothing of a token: who holds it must not be told to get another.
func TestAStoreThatFailsIsNotAWrongToken(t *testing.T) {
	r := newRig(t)
	text, _ := r.create(t, "default", access.Read)
	r.set(func(_ context.Context, c faulty.Call) faulty.Fault { return faulty.Fault{Refuse: store.ErrThrottled} })
	if _, err := r.Check(t.Context(), text); !errors.Is(err, store.ErrThrottled) || errors.Is(err, access.ErrNoToken) {
		t.Errorf("got %v, want the store's error", err)
	}
	r.set(nil)
	if _, err := r.Check(t.Context(), text); err != nil {
		t.Errorf("when the store is back: %v", err)
	}
	r.set(func(_ context.Context, c faulty.Call) faulty.Fault { return faulty.Fault{Refuse: store.ErrThrottled} })
	r.clock.add(access.CacheFor - time.Second)
	for range 2 { // each asks again
		before := r.reads()
		if _, err := r.Check(t.Context(), text); err != nil || r.reads() != before+1 {
			t.Errorf("while what is known is good: %v after %d reads, want it let in, and the store asked", err, r.reads()-before)
		}
	}
	r.clock.add(time.Second)
	if _, err := r.Check(t.Context(), text); !errors.Is(err, store.ErrThrottled) {
		t.Errorf("when it is not good any more: %v, want the store's error", err)
	}
	r.set(func(_ context.Context, c faulty.Call) faulty.Fault {
		if c.Method == faulty.Write {
			return faulty.Fault{Refuse: store.ErrUnknown}
		}
		return faulty.Fault{}
	})
	r.clock.add(2 * time.Hour)
	if _, err := r.Check(t.Context(), text); err != nil {
		t.Errorf("while its use cannot be noted: %v, want it let in", err)
	}
}
