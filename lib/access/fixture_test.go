package access_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

// clock stands still until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// chance is a source that gives other bytes each time, the same in each test.
type chance struct{ n uint64 }

func (c *chance) Read(p []byte) (int, error) {
	for at := 0; at < len(p); at += sha256.Size {
		c.n++
		block := sha256.Sum256(binary.BigEndian.AppendUint64(nil, c.n))
		copy(p[at:], block[:])
	}
	return len(p), nil
}

// rig is tokens over a store in memory that counts its calls, and fails them while told so.
type rig struct {
	*access.Tokens
	clock *clock
	store *faulty.Store

	mu   sync.Mutex
	hook faulty.Hook
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{clock: &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}}
	r.store = faulty.New(memory.New(memory.Config{Now: r.clock.Now}), func(ctx context.Context, c faulty.Call) faulty.Fault {
		r.mu.Lock()
		hook := r.hook
		r.mu.Unlock()
		if hook == nil {
			return faulty.Fault{}
		}
		return hook(ctx, c)
	})
	r.Tokens = r.another(t)
	return r
}

func (r *rig) set(hook faulty.Hook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook = hook
}

// reads is how often the store was asked for a token.
func (r *rig) reads() int { return r.store.Count(faulty.Get).Calls }

// another is the tokens of a second process on the same store.
func (r *rig) another(t *testing.T) *access.Tokens {
	t.Helper()
	id := uint64(0)
	tokens, err := access.New(access.Config{Store: r.store, Now: r.clock.Now, Random: &chance{},
		NewID: func() uint64 { id++; return id }})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func (r *rig) create(t *testing.T, tenant string, scopes ...access.Scope) (string, access.Token) {
	t.Helper()
	text, token, err := r.Create(t.Context(), tenant, access.Request{Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return text, token
}
