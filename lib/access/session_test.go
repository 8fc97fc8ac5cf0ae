package access_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// enter is the caller whose token this is.
func enter(t *testing.T, g *access.Gate, text string) access.Caller {
	t.Helper()
	c, err := g.Admit(t.Context(), text, here)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// session opens one of a token, to see for an hour.
func (r *rig) session(t *testing.T, g *access.Gate, text string) (string, access.Token) {
	t.Helper()
	session, made, err := g.Open(t.Context(), enter(t, g, text), access.Request{Name: "console", Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return session, made
}

func TestASessionIsItsTokensWithNoMoreThanThat(t *testing.T) {
	all := []access.Scope{access.Read, access.Run, access.Write}
	for _, c := range []struct {
		held, asked, want []access.Scope // want none where it is refused
	}{
		{[]access.Scope{access.Read}, []access.Scope{access.Read}, []access.Scope{access.Read}},
		{[]access.Scope{access.Read, access.Run}, []access.Scope{access.Read, access.Run}, []access.Scope{access.Read, access.Run}},
		{[]access.Scope{access.Write}, []access.Scope{access.Read, access.Run}, []access.Scope{access.Read, access.Run}},
		{[]access.Scope{access.Admin}, []access.Scope{access.Write}, []access.Scope{access.Write}},
		{[]access.Scope{access.Admin}, all, all},
		{[]access.Scope{access.Write}, all, all},
		{[]access.Scope{access.Read, access.Work}, all, []access.Scope{access.Read}},
		{[]access.Scope{access.Read, access.Run}, all, []access.Scope{access.Read, access.Run}},
		{[]access.Scope{access.Read}, []access.Scope{access.Read, access.Run}, []access.Scope{access.Read}},
		{[]access.Scope{access.Read}, []access.Scope{access.Write}, nil},
		{[]access.Scope{access.Read, access.Run}, []access.Scope{access.Write}, nil},
		{[]access.Scope{access.Run, access.Work}, []access.Scope{access.Read}, nil},
		{[]access.Scope{access.Run, access.Work}, all, nil},
	} {
		r := newRig(t)
		g := r.gate(t, access.GateConfig{Required: true})
		text, parent := r.create(t, "acme", c.held...)
		session, made, err := g.Open(t.Context(), enter(t, g, text), access.Request{Name: "console", Scopes: c.asked, Expires: r.clock.Now().Add(time.Hour)})
		var exceeds *access.Exceeds
		if c.want == nil {
			if !errors.As(err, &exceeds) || session != "" {
				t.Errorf("%v asks for %v: %v, want it refused", c.held, c.asked, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := enter(t, g, session)
		if got.Tenant != "acme" || got.Token != made.ID || got.Parent != parent.ID || !slices.Equal(got.Scopes, c.want) || !slices.Equal(made.Scopes, c.want) || !got.Expires.Equal(made.Expires) || got.May(access.Admin) || got.Host {
			t.Errorf("%v asks for %v: let in as %+v", c.held, c.asked, got)
		}
	}
}

func TestWhatASessionCannotBe(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	text, _ := r.create(t, "default", access.Admin)
	caller, soon := enter(t, g, text), r.clock.Now().Add(time.Hour)
	for _, c := range []struct {
		field string
		want  access.Request
	}{
		{"scopes[1]", access.Request{Scopes: []access.Scope{access.Read, access.Admin}, Expires: soon}},
		{"scopes[1]", access.Request{Scopes: []access.Scope{access.Read, access.Work}, Expires: soon}},
		{"scopes[1]", access.Request{Scopes: []access.Scope{access.Read, "all"}, Expires: soon}},
		{"scopes", access.Request{Scopes: []access.Scope{access.Run}, Expires: soon}},
		{"scopes", access.Request{Expires: soon}},
		{"expires", access.Request{Scopes: []access.Scope{access.Read}}},
		{"expires", access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(access.SessionFor + time.Millisecond)}},
		{"name", access.Request{Scopes: []access.Scope{access.Read}, Expires: soon, Name: "two\nlines"}},
	} {
		_, _, err := g.Open(t.Context(), caller, c.want)
		if fields := invalid.All(err); len(fields) != 1 || fields[0].Field != c.field {
			t.Errorf("%+v: %v, want %s refused", c.want, err, c.field)
		}
	}
	if tokens, _, err := r.List(t.Context(), "default", "", 10); err != nil || len(tokens) != 1 {
		t.Errorf("there are %d tokens, %v; want none but the first", len(tokens), err)
	}
}

// What is refused writes nothing, and is not to use up the sessions of a token.
func TestASessionThatIsRefusedCountsForNothing(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	text, _ := r.create(t, "default", access.Read)
	caller := enter(t, g, text)
	for range 100 {
		var exceeds *access.Exceeds
		if _, _, err := g.Open(t.Context(), caller, access.Request{Scopes: []access.Scope{access.Write}, Expires: r.clock.Now().Add(time.Hour)}); !errors.As(err, &exceeds) {
			t.Fatalf("%v, want the scope write refused", err)
		}
	}
	r.session(t, g, text)
}

// By one session after the other a right that was lent for a day would last for ever.
func TestASessionOpensNoOther(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{})
	text, _ := r.create(t, "default", access.Admin)
	session, made := r.session(t, g, text)
	want := access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(time.Hour)}
	callers := map[string]access.Caller{
		"a session":                           enter(t, g, session),
		"nobody":                              enter(t, g, ""),
		"a session that says that it is none": {Tenant: "default", Token: made.ID, Scopes: []access.Scope{access.Admin}},
		"a token that is not there":           {Tenant: "default", Token: "0123456789abcdef", Scopes: []access.Scope{access.Admin}},
	}
	for what, c := range callers {
		if _, _, err := g.Open(t.Context(), c, want); !errors.Is(err, access.ErrNoSession) {
			t.Errorf("%s: %v, want none", what, err)
		}
	}
}

func TestASessionEndsByItselfAndWithItsToken(t *testing.T) {
	t.Run("at its own end", func(t *testing.T) {
		r := newRig(t)
		g := r.gate(t, access.GateConfig{Required: true})
		text, _ := r.create(t, "default", access.Read)
		session, _ := r.session(t, g, text)
		r.clock.add(time.Hour - time.Millisecond)
		enter(t, g, session)
		r.clock.add(time.Millisecond)
		_, err := g.Admit(t.Context(), session, here)
		if u := refused(t, err); !u.Given || u.Message != "The session expired at 2026-11-21T10:00:00Z. Open a new one with a token." {
			t.Errorf("at its end: %+v", u)
		}
		enter(t, g, text)
	})
	t.Run("at the end of its token", func(t *testing.T) {
		r := newRig(t)
		g := r.gate(t, access.GateConfig{Required: true})
		text, parent, err := r.Create(t.Context(), "default", access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		session, made := r.session(t, g, text)
		if !made.Expires.Equal(parent.Expires) {
			t.Errorf("it expires at %v, want %v as its token does", made.Expires, parent.Expires)
		}
		r.clock.add(time.Minute)
		_, err = g.Admit(t.Context(), session, here)
		refused(t, err)
	})
	t.Run("when it is ended", func(t *testing.T) {
		r := newRig(t)
		g := r.gate(t, access.GateConfig{Required: true})
		text, _ := r.create(t, "default", access.Read)
		session, made := r.session(t, g, text)
		other, _ := r.session(t, g, text)
		if err := r.Revoke(t.Context(), "default", made.ID); err != nil {
			t.Fatal(err)
		}
		_, err := g.Admit(t.Context(), session, here)
		refused(t, err)
		enter(t, g, other)
		enter(t, g, text)
		if items, err := r.store.Get(t.Context(), access.KeyOf(made.ID)); err != nil || !items[0].Expires.Equal(made.Expires) {
			t.Errorf("it is kept until %v, %v; want until its own end, %v", items[0].Expires, err, made.Expires)
		}
	})
}

// Where the token is revoked its sessions end at once, and within the bound in every other process, whatever that knows of them.
func TestRevokingATokenEndsItsSessions(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	other := r.another(t)
	text, parent := r.create(t, "default", access.Write)
	session, _ := r.session(t, g, text)
	_, stranger := r.create(t, "default", access.Write)
	enter(t, g, session)
	if _, err := other.Check(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if err := r.Revoke(t.Context(), "default", stranger.ID); err != nil {
		t.Fatal(err)
	}
	enter(t, g, session)
	if err := r.Revoke(t.Context(), "default", parent.ID); err != nil {
		t.Fatal(err)
	}
	_, err := g.Admit(t.Context(), session, here)
	if u := refused(t, err); !strings.Contains(u.Message, parent.ID+", which was revoked at") {
		t.Errorf("here: %+v", u)
	}
	var ended *access.Ended
	for at := time.Duration(0); at < access.CacheFor; at += time.Second { // the session is asked for all the time, its token is not
		r.clock.add(time.Second)
		_, err = other.Check(t.Context(), session)
	}
	if !errors.As(err, &ended) || !ended.Session {
		t.Errorf("elsewhere after %s: %v", access.CacheFor, err)
	}
	if any, err := r.Any(t.Context()); any || err != nil {
		t.Errorf("a session without its token counts as one: %t, %v", any, err)
	}
	_, _, err = g.Open(t.Context(), access.Caller{Tenant: "default", Token: parent.ID, Scopes: parent.Scopes}, access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(time.Minute)})
	if !errors.As(err, &ended) {
		t.Errorf("a request that was let in before opens a session: %v", err)
	}
	r.clock.add(31 * 24 * time.Hour)
	if _, err = r.another(t).Check(t.Context(), session); !errors.Is(err, access.ErrNoToken) && !errors.As(err, &ended) {
		t.Errorf("when the token has been forgotten: %v", err)
	}
}

// While the store cannot be asked for the token, its session is as unknown as it is.
func TestASessionIsNotGoodWhileItsTokenCannotBeAskedFor(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	text, parent := r.create(t, "default", access.Read)
	session, _ := r.session(t, g, text)
	enter(t, g, session)
	r.set(func(_ context.Context, c faulty.Call) faulty.Fault {
		if c.Method == faulty.Get && slices.Contains(c.Keys, access.KeyOf(parent.ID)) {
			return faulty.Fault{Refuse: errors.New("the disk is gone")}
		}
		return faulty.Fault{}
	})
	r.clock.add(access.CacheFor)
	var u *access.Unauthenticated
	if _, err := g.Admit(t.Context(), session, here); err == nil || errors.As(err, &u) {
		t.Errorf("%v, want the error of the store", err)
	}
}

// Many sessions are not many times the bounds of a token.
func TestP11_ASessionSharesTheBoundsOfItsToken(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true, Rate: 1, Burst: 2})
	text, _ := r.create(t, "default", access.Read)
	first, _ := r.session(t, g, text)  // a request
	second, _ := r.session(t, g, text) // and another
	for _, session := range []string{first, second, text} {
		_, err := g.Admit(t.Context(), session, here)
		limited(t, err)
	}

	g = r.gate(t, access.GateConfig{Required: true, Requests: 4})
	var leave []func()
	for _, session := range []string{first, second} {
		done, err := g.Enter(enter(t, g, session), 1)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, done)
	}
	_, err := g.Enter(enter(t, g, text), 1)
	limited(t, err)
	leave[0]()
	if _, err := g.Enter(enter(t, g, text), 1); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

// A token that may only read writes something by opening a session: seldom enough to fill nothing.
func TestP11_ATokenOpensFewSessions(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	text, _ := r.create(t, "default", access.Read)
	other, _ := r.create(t, "default", access.Read)
	opened := 0
	for range 6 * 3600 { // six hours, a try a second
		if _, _, err := g.Open(t.Context(), enter(t, g, text), access.Request{Scopes: []access.Scope{access.Read}, Expires: r.clock.Now().Add(access.SessionFor)}); err == nil {
			opened++
		} else {
			limited(t, err)
		}
		r.clock.add(time.Second)
	}
	if opened < 6*60 || opened > 6*60+20 {
		t.Errorf("%d sessions in six hours, want one a minute and 20", opened)
	}
	r.session(t, g, other)
}
