package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// CacheFor is how long a token counts as what it was when the store was last asked: a token that another process revoked is
// refused here at most so much later. A request that was let in before goes on to its end.
const CacheFor = 5 * time.Second

// Bounds of what is remembered. Tokens that were found are few, and hold some 300 bytes each. IDs that were not found are as
// many as somebody cares to make up: they are kept only to spare the store the same question again and again.
const (
	maxKnown  = 10_000
	maxAbsent = 1_000
)

// usedEvery is how exact Token.Used is, and so how often at most a token is written for having been used.
const usedEvery = time.Hour

// cache remembers tokens. Those past their time are kept as well: they tell a token that was good from a guess.
type cache struct {
	mu     sync.Mutex
	known  map[string]*known
	absent map[string]time.Time // until when
}

type known struct {
	token   Token
	asOf    time.Time // when the question to the store was sent
	renewal bool      // somebody is asking again
}

func newCache() cache {
	return cache{known: map[string]*known{}, absent: map[string]time.Time{}}
}

// learn keeps what the store said of a token, unless something newer is known: an answer that was under way while the token
// was revoked here does not bring it back.
func (c *cache) learn(t Token, asOf time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[t.ID]; k != nil {
		k.renewal = false
		if k.token.version <= t.version {
			k.token, k.asOf = t, asOf
		}
		return
	}
	if len(c.known) >= maxKnown {
		for id := range c.known { // any: the map begins somewhere else each time
			delete(c.known, id)
			break
		}
	}
	c.known[t.ID] = &known{token: t, asOf: asOf}
}

// learnAbsent keeps that the store has no such token.
func (c *cache) learnAbsent(id string, asOf time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
	if len(c.absent) >= maxAbsent {
		clear(c.absent)
	}
	c.absent[id] = asOf.Add(CacheFor)
}

// state is what the cache says of an ID.
type state uint8

const (
	unknown state = iota // ask the store
	stale                // ask the store; the token is as it was a while ago
	aging                // good, and this caller should ask the store for the next ones
	fresh
	absent
)

func (c *cache) recall(id string, now time.Time) (Token, state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until, ok := c.absent[id]; ok {
		if now.Before(until) {
			return Token{}, absent
		}
		delete(c.absent, id)
	}
	k := c.known[id]
	if k == nil {
		return Token{}, unknown
	}
	age := now.Sub(k.asOf)
	switch {
	case age < 0 || age >= CacheFor:
		return k.token, stale
	case age >= CacheFor/2 && !k.renewal:
		// One caller asks early, so that under load the others never have to, all at once.
		k.renewal = true
		return k.token, aging
	}
	return k.token, fresh
}

// giveUp lets the next caller ask instead of one whose question failed.
func (c *cache) giveUp(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[id]; k != nil {
		k.renewal = false
	}
}

// proven tells whether the text is that of a token that was good when it was last looked at, however long ago: whoever
// has it does not guess.
func (s *Tokens) proven(text string) bool {
	id, err := parse(text)
	if err != nil {
		return false
	}
	s.cache.mu.Lock()
	k := s.cache.known[id]
	var t Token
	if k != nil {
		t = k.token
	}
	var parent Token
	if k != nil && t.Parent != "" {
		if of := s.cache.known[t.Parent]; of != nil {
			parent = of.token
		}
	}
	s.cache.mu.Unlock()
	now := s.Now()
	return k != nil && t.Ended(now) == "" && t.holds(text) && (t.Parent == "" || parent.ID != "" && parent.Ended(now) == "")
}

// Check gives the token of which this is the text. ErrNoToken says that it is none's, Ended that it is that of one which has
// expired or was revoked, or of a session whose token has; other errors come from the store, and say nothing about the token.
func (s *Tokens) Check(ctx context.Context, text string) (Token, error) {
	id, err := parse(text)
	if err != nil {
		return Token{}, err
	}
	asOf := s.Now()
	t, how, err := s.look(ctx, id, asOf)
	if err != nil {
		return Token{}, err
	}
	if !t.holds(text) {
		return Token{}, ErrNoToken
	}
	if why := t.Ended(asOf); why != "" {
		return Token{}, &Ended{Why: why, Session: t.Parent != ""}
	}
	if t.Parent != "" {
		if err := s.parent(ctx, t, asOf); err != nil {
			return Token{}, err
		}
	}
	if how != fresh && asOf.Sub(t.Used) >= usedEvery {
		s.use(ctx, t, asOf)
	}
	return t, nil
}

// look gives a token as it is known, or as the store has it. ErrNoToken says that there is none of this ID.
func (s *Tokens) look(ctx context.Context, id string, asOf time.Time) (Token, state, error) {
	t, how := s.cache.recall(id, asOf)
	switch how {
	case fresh:
	case absent:
		return Token{}, how, ErrNoToken
	case unknown, stale, aging:
		now, err := s.get(ctx, id)
		switch {
		case err != nil && how == aging:
			s.cache.giveUp(id) // what is known is good for a while yet, and the next caller asks
		case err != nil:
			return Token{}, how, fmt.Errorf("look up the token: %w", err)
		case now.version == 0:
			s.cache.learnAbsent(id, asOf)
			return Token{}, how, ErrNoToken
		default:
			t = now
			s.cache.learn(t, asOf)
		}
	}
	return t, how, nil
}

// parent tells whether the token is good of which this is a session.
func (s *Tokens) parent(ctx context.Context, session Token, asOf time.Time) error {
	t, _, err := s.look(ctx, session.Parent, asOf)
	switch {
	case errors.Is(err, ErrNoToken):
		return &Ended{Why: "belongs to the token " + session.Parent + ", which is gone", Session: true}
	case err != nil:
		return err
	}
	if why := t.Ended(asOf); why != "" {
		return &Ended{Why: "belongs to the token " + t.ID + ", which " + why, Session: true}
	}
	return nil
}

// Ended is what whoever has a token's secret learns of it when it is no longer good.
type Ended struct {
	Why     string // as in "expired at 2026-11-21T09:00:00Z"
	Session bool   // it is that of a session
}

func (e *Ended) Error() string {
	if e.Session {
		return "the session " + e.Why
	}
	return "the token " + e.Why
}

// use notes that the token was used. It is for people who wonder whether anybody still needs it, so failing at it fails nothing;
// its condition keeps it from undoing a revocation.
func (s *Tokens) use(ctx context.Context, t Token, now time.Time) {
	t.Used = now.UTC().Truncate(usedEvery)
	version, err := s.put(ctx, t, store.Version(t.version))
	if err != nil {
		s.Log.DebugContext(ctx, "the use of a token was not noted", "token", t.ID, "error", err)
		return
	}
	t.version = version
	s.cache.learn(t, now)
}
