package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// SessionFor is how long a session lasts at most.
const SessionFor = 12 * time.Hour

// How often a token opens a session: often enough for whoever opens many tabs, too seldom for a token that may only read to
// fill the store.
const (
	sessionRate  = 1.0 / 60 // a second
	sessionBurst = 20
)

// SessionScopes are those that a session may have. None is admin: what makes tokens outlasts every session.
var SessionScopes = []Scope{Read, Run, Write}

// ErrNoSession says that the caller can open no session: it has no token, or is a session itself.
var ErrNoSession = errors.New("no token to make a session of")

// Exceeds says that a session would be there for nothing: the token has none of the scopes that it may see something by.
type Exceeds struct{ Scope Scope } // the first of them

func (e *Exceeds) Error() string { return "the token does not have the scope " + string(e.Scope) }

// grant gives those of the scopes that a session may have at most which its token has, too.
func (r Request) grant(held []Scope) ([]Scope, error) {
	var granted []Scope
	for _, scope := range r.Scopes {
		if Grants(held, scope) {
			granted = append(granted, scope)
		}
	}
	if Grants(granted, Read) {
		return granted, nil
	}
	sees := slices.IndexFunc(r.Scopes, func(s Scope) bool { return Grants([]Scope{s}, Read) })
	return nil, &Exceeds{Scope: r.Scopes[sees]}
}

// CheckSession gives what is wrong with a request for a session, whoever asks, as joined *invalid.Error. The request has to say
// when the session is to end.
func (r Request) CheckSession(now time.Time) error {
	errs := []error{r.Check(now)}
	for i, s := range r.Scopes {
		if slices.Contains(Scopes, s) && !slices.Contains(SessionScopes, s) {
			errs = append(errs, invalid.Field(fmt.Sprintf("scopes[%d]", i), string(s), "read, run or write; for the others use the token itself"))
		}
	}
	if len(r.Scopes) > 0 && !Grants(r.Scopes, Read) {
		errs = append(errs, invalid.Field("scopes", fmt.Sprint(r.Scopes), "read or write among them: a session is there to see something"))
	}
	if r.Expires.IsZero() || r.Expires.Sub(now) > SessionFor {
		errs = append(errs, invalid.Field("expires", r.Expires.Format(time.RFC3339), "a time in the next "+SessionFor.String()))
	}
	return errors.Join(errs...)
}

// Open makes a session of the caller's token, with those of the scopes that the token has. It ends with that, if not before. The errors are
// those of CheckSession, *Exceeds, *Ended, *Limited, ErrNoSession, and those of the store.
func (g *Gate) Open(ctx context.Context, c Caller, r Request) (text string, session Token, err error) {
	if c.Token == "" || c.Parent != "" {
		return "", Token{}, ErrNoSession
	}
	now := g.Now()
	if err := r.CheckSession(now); err != nil {
		return "", Token{}, err
	}
	if _, err := r.grant(c.Scopes); err != nil {
		return "", Token{}, err // which writes nothing, so it does not count
	}
	if wait := g.sessions.take(c.Token, now); wait > 0 {
		return "", Token{}, &Limited{RetryAfter: wait, Message: "The token " + c.Token + " opens too many sessions. Nothing was done."}
	}
	return g.Tokens.open(ctx, c.Token, r)
}

// open goes by what the store has of the parent, which may be newer than what the caller was let in by. Should the parent be revoked
// while this writes, the session is one of a token that has ended, as all its others are.
func (s *Tokens) open(ctx context.Context, parent string, r Request) (text string, session Token, err error) {
	of, err := s.get(ctx, parent)
	switch {
	case err != nil:
		return "", Token{}, fmt.Errorf("look up the token: %w", err)
	case of.version == 0 || of.Parent != "":
		return "", Token{}, ErrNoSession
	}
	if why := of.Ended(s.Now()); why != "" {
		return "", Token{}, &Ended{Why: why}
	}
	scopes, err := r.grant(of.Scopes)
	if err != nil {
		return "", Token{}, err
	}
	session = Token{Tenant: of.Tenant, Parent: of.ID, Name: r.Name, Scopes: scopes, Expires: r.Expires}
	if !of.Expires.IsZero() && of.Expires.Before(session.Expires) {
		session.Expires = of.Expires
	}
	text, session, err = s.add(ctx, session)
	if err == nil {
		s.Log.InfoContext(ctx, "a session was opened", "token", session.ID, "of", of.ID, "name", session.Name, "tenant", session.Tenant, "scopes", session.Scopes, "expires", session.Expires)
	}
	return text, session, err
}
