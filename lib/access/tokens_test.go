package access_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func TestATokenLetsItsOwnerInAsWhatItWasMadeFor(t *testing.T) {
	r := newRig(t)
	expires := r.clock.Now().Add(time.Hour)
	text, made, err := r.Create(t.Context(), "acme", access.Request{Name: "deploys", Scopes: []access.Scope{access.Read, access.Run}, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^bel_[0-9a-f]{16}_[0-9A-Za-z]{49}$`).MatchString(text) || !strings.Contains(text, made.ID) {
		t.Errorf("the token is %q, want bel_ID_SECRET with the ID %s", text, made.ID)
	}
	got, err := r.Check(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != made.ID || got.Tenant != "acme" || got.Name != "deploys" || !slices.Equal(got.Scopes, made.Scopes) || !got.Expires.Equal(expires) {
		t.Errorf("it is let in as %+v, want %+v", got, made)
	}
}

// The store, a backup of it, or a disk that was thrown away, give nobody a token.
func TestTheStoreHoldsNoSecret(t *testing.T) {
	r := newRig(t)
	var written [][]byte
	r.set(func(_ context.Context, c faulty.Call) faulty.Fault {
		for _, op := range c.Ops {
			written = append(written, []byte(op.Key.String()), bytes.Clone(op.Value))
		}
		return faulty.Fault{}
	})
	text, made := r.create(t, "default", access.Admin)
	secret := text[len("bel_")+len(made.ID)+1:]
	if len(written) == 0 {
		t.Fatal("nothing was written")
	}
	for _, piece := range []string{secret, secret[:12], secret[20:32]} {
		for _, w := range written {
			if bytes.Contains(w, []byte(piece)) {
				t.Errorf("%q holds a part of the secret", w)
			}
		}
	}
}

func TestOnlyTheWholeTokenLetsIn(t *testing.T) {
	r := newRig(t)
	text, made := r.create(t, "default", access.Read)
	other, _ := r.create(t, "default", access.Read)
	before := r.reads()
	for name, wrong := range map[string]string{
		"nothing":           "",
		"its ID":            made.ID,
		"a shorter one":     text[:len(text)-1],
		"a longer one":      text + "0",
		"one letter other":  text[:40] + flipped(text[40]) + text[41:],
		"the ID of another": text[:4] + other[4:20] + text[20:],
		"other beginnings":  "BEL_" + text[4:],
		"blanks":            strings.Repeat(" ", len(text)),
		"what is no text":   strings.Repeat("\xff", len(text)),
	} {
		if _, err := r.Check(t.Context(), wrong); !errors.Is(err, access.ErrNoToken) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	if got := r.reads(); got != before {
		t.Errorf("the store was asked %d times about texts that are no tokens", got-before)
	}
	if _, err := r.Check(t.Context(), text); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

func flipped(c byte) string {
	if c == 'x' {
		return "y"
	}
	return "x"
}

// A right form with another secret, as somebody makes up who knows an ID and how the checksum is made.
func TestAnotherSecretUnderAKnownIDIsRefused(t *testing.T) {
	r := newRig(t)
	_, made := r.create(t, "default", access.Admin)
	forged := access.Forge(made.ID, strings.Repeat("7", 43))
	for _, when := range []string{"unknown", "cached"} {
		if _, err := r.Check(t.Context(), forged); !errors.Is(err, access.ErrNoToken) {
			t.Errorf("%s: %v, want it refused", when, err)
		}
	}
	if r.reads() == 0 {
		t.Error("the store was never asked: the forged token did not have the form of one")
	}
}

func TestAnExpiredTokenLetsNobodyIn(t *testing.T) {
	r := newRig(t)
	text, _, err := r.Create(t.Context(), "default", access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	r.clock.add(time.Minute - time.Millisecond)
	if _, err := r.Check(t.Context(), text); err != nil {
		t.Fatalf("a moment before: %v", err)
	}
	r.clock.add(time.Millisecond) // what was cached a moment ago expires too
	var ended *access.Ended
	if _, err := r.Check(t.Context(), text); !errors.As(err, &ended) || ended.Why != "expired at 2026-11-21T09:01:00Z" {
		t.Errorf("at its expiry: %v", err)
	}
}

func TestARevokedTokenIsRefusedHereAtOnceAndElsewhereWithinTheBound(t *testing.T) {
	r := newRig(t)
	other := r.another(t)
	text, made := r.create(t, "default", access.Read)
	for _, process := range []*access.Tokens{r.Tokens, other} {
		if _, err := process.Check(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Revoke(t.Context(), "default", made.ID); err != nil {
		t.Fatal(err)
	}
	var ended *access.Ended
	if _, err := r.Check(t.Context(), text); !errors.As(err, &ended) {
		t.Errorf("here: %v, want it refused at once", err)
	}
	r.clock.add(access.CacheFor)
	if _, err := other.Check(t.Context(), text); !errors.As(err, &ended) {
		t.Errorf("in another process, after %s: %v, want it refused", access.CacheFor, err)
	}
	if err := r.Revoke(t.Context(), "default", made.ID); err != nil {
		t.Errorf("revoking it again: %v", err)
	}
	tokens, _, err := r.List(t.Context(), "default", "", 10)
	if err != nil || len(tokens) != 1 || tokens[0].Revoked.IsZero() {
		t.Errorf("the list has %+v, %v; want the token, with when it was revoked", tokens, err)
	}
}

// The answer of a look-up that began before the revocation comes after it.
func TestALateAnswerDoesNotBringARevokedTokenBack(t *testing.T) {
	r := newRig(t)
	text, made := r.create(t, "default", access.Read)
	asked, answer := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	hold.Store(true)
	slow := &slowGet{Store: r.store, after: func() {
		if hold.Swap(false) {
			close(asked)
			<-answer
		}
	}}
	var id atomic.Uint64
	tokens, err := access.New(access.Config{Store: slow, Now: r.clock.Now, Random: &chance{}, NewID: func() uint64 { return id.Add(1) + 100 }})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := tokens.Check(context.WithoutCancel(t.Context()), text)
		done <- err
	}()
	<-asked
	if err := tokens.Revoke(t.Context(), "default", made.ID); err != nil {
		t.Fatal(err)
	}
	close(answer)
	<-done // it was asked before, and may go either way
	var ended *access.Ended
	if _, err := tokens.Check(t.Context(), text); !errors.As(err, &ended) {
		t.Errorf("after the late answer: %v, want the token refused", err)
	}
}

// While one caller asks anew, and the store takes its time, the others go by what is known, and not for longer than the bound.
func TestASlowStoreDoesNotKeepARevokedTokenGood(t *testing.T) {
	r := newRig(t)
	text, made := r.create(t, "default", access.Read)
	asked, answer := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	slow := &slowGet{Store: r.store, after: func() {
		if hold.Swap(false) {
			close(asked)
			<-answer
		}
	}}
	var id atomic.Uint64
	tokens, err := access.New(access.Config{Store: slow, Now: r.clock.Now, Random: &chance{}, NewID: func() uint64 { return id.Add(1) + 100 }})
	if err != nil {
		t.Fatal(err)
	}
	check := func() error { _, err := tokens.Check(context.WithoutCancel(t.Context()), text); return err }
	if err := check(); err != nil {
		t.Fatal(err)
	}
	r.clock.add(access.CacheFor - time.Second)
	hold.Store(true)
	done := make(chan error, 1)
	go func() { done <- check() }()
	<-asked
	if err := r.Revoke(t.Context(), "default", made.ID); err != nil {
		t.Fatal(err)
	}
	before := r.reads()
	if err := check(); err != nil || r.reads() != before {
		t.Errorf("within the bound: %v after %d reads, want what is known", err, r.reads()-before)
	}
	r.clock.add(time.Second)
	var ended *access.Ended
	if err := check(); !errors.As(err, &ended) {
		t.Errorf("at the bound, while somebody else asks: %v, want the token refused", err)
	}
	close(answer)
	<-done
}

// slowGet holds answers back.
type slowGet struct {
	store.Store
	after func()
}

func (s *slowGet) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := s.Store.Get(ctx, keys...)
	s.after()
	return items, err
}

func TestP12_TokensAreListedAndRevokedByTheirTenantAlone(t *testing.T) {
	r := newRig(t)
	var mine []string
	for range 7 {
		_, made := r.create(t, "acme", access.Read)
		mine = append(mine, made.ID)
		r.create(t, "acme-2", access.Read)
		r.create(t, "acm", access.Read)
		r.create(t, "acmes", access.Read)
	}
	slices.Sort(mine)
	var listed []string
	cursor := ""
	for {
		tokens, next, err := r.List(t.Context(), "acme", cursor, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			listed = append(listed, token.ID)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if !slices.Equal(listed, mine) {
		t.Errorf("listed %v, want %v", listed, mine)
	}
	if err := r.Revoke(t.Context(), "acme-2", mine[0]); !errors.Is(err, access.ErrNoSuchToken) {
		t.Errorf("another tenant revokes it: %v, want it not found", err)
	}
	if err := r.Revoke(t.Context(), "acme", "no/such#id"); !errors.Is(err, access.ErrNoSuchToken) {
		t.Errorf("an ID that is none: %v", err)
	}
	all, _, err := r.All(t.Context(), "", 100)
	if err != nil || len(all) != 28 {
		t.Errorf("all tokens: %d, %v; want 28", len(all), err)
	}
}

func TestTokensAreRefusedThatWouldMeanNothing(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		field  string
		tenant string
		want   access.Request
	}{
		{"scopes", "a", access.Request{}},
		{"scopes[1]", "a", access.Request{Scopes: []access.Scope{access.Read, "reed"}}},
		{"scopes[0]", "a", access.Request{Scopes: []access.Scope{access.Open}}},
		{"scopes[1]", "a", access.Request{Scopes: []access.Scope{access.Read, access.Read}}},
		{"expires", "a", access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now()}},
		{"name", "a", access.Request{Scopes: []access.Scope{access.Read}, Name: "two\nlines"}},
		{"name", "a", access.Request{Scopes: []access.Scope{access.Read}, Name: strings.Repeat("é", 101)}},
		{"tenant", "a/b", access.Request{Scopes: []access.Scope{access.Read}}},
		{"tenant", "a#b", access.Request{Scopes: []access.Scope{access.Read}}},
		{"tenant", "", access.Request{Scopes: []access.Scope{access.Read}}},
	} {
		_, _, err := r.Create(t.Context(), c.tenant, c.want)
		if fields := invalid.All(err); len(fields) != 1 || fields[0].Field != c.field {
			t.Errorf("%q %+v: %v, want %s refused", c.tenant, c.want, err, c.field)
		}
	}
	if any, err := r.Any(t.Context()); any || err != nil {
		t.Errorf("a refused token stands: %t, %v", any, err)
	}
}

func TestAnyFindsATokenThatLetsSomebodyIn(t *testing.T) {
	r := newRig(t)
	want := func(when string, want bool) {
		t.Helper()
		if got, err := r.Any(t.Context()); err != nil || got != want {
			t.Errorf("%s: %t, %v; want %t", when, got, err, want)
		}
	}
	want("none", false)
	_, made := r.create(t, "acme", access.Work)
	want("one", true)
	if err := r.Revoke(t.Context(), "acme", made.ID); err != nil {
		t.Fatal(err)
	}
	want("it was revoked", false)
	for i := range 150 {
		if _, _, err := r.Create(t.Context(), fmt.Sprintf("t%03d", i), access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	r.create(t, "zz", access.Read)
	r.clock.add(2 * time.Hour)
	want("one behind many that expired", true)
}

// A revocation is not undone by what notes that the token was used, and of two changes at once none is lost.
func TestUseIsNotedOnceAnHourAndUndoesNothing(t *testing.T) {
	r := newRig(t)
	text, made := r.create(t, "default", access.Read)
	check := func() {
		t.Helper()
		if _, err := r.Check(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	writes := func() int { return r.store.Count(faulty.Write).Calls }
	before := writes()
	for range 3 * 60 * 6 { // three hours, a request every ten seconds
		check()
		r.clock.add(10 * time.Second)
	}
	if got := writes() - before; got != 3 {
		t.Errorf("%d writes in three hours of use, want 3", got)
	}
	tokens, _, err := r.List(t.Context(), "default", "", 10)
	if err != nil || !tokens[0].Used.Equal(time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("used at %v, %v; want the last hour", tokens, err)
	}

	other := r.another(t)
	r.clock.add(time.Hour)
	revoked := false
	r.set(func(_ context.Context, c faulty.Call) faulty.Fault {
		if c.Method == faulty.Write && !revoked {
			revoked = true
			if err := other.Revoke(t.Context(), "default", made.ID); err != nil {
				t.Error(err)
			}
		}
		return faulty.Fault{}
	})
	check() // reads the token, which is then revoked before its use is noted
	r.clock.add(access.CacheFor)
	var ended *access.Ended
	if _, err := r.Check(t.Context(), text); !revoked || !errors.As(err, &ended) {
		t.Errorf("revoked %t, %v; want the token refused", revoked, err)
	}
}
