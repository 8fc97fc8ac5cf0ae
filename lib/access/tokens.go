package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Config is what Tokens stand on. Fields without a default are required.
type Config struct {
	Store  store.Store
	Now    func() time.Time
	Random io.Reader     // of secrets and IDs: crypto/rand.Reader
	NewID  func() uint64 // marks writes; random, never 0
	Log    *slog.Logger  // default: discards
}

// Tokens makes, lists, revokes and checks tokens. It is safe for concurrent use.
type Tokens struct {
	Config
	cache cache
}

// keepEnded is how long a token that has expired or was revoked is still listed, so that people find out what happened to it.
const keepEnded = 30 * 24 * time.Hour

// changeTries bounds how often a change is begun again because somebody else changed the token meanwhile.
const changeTries = 5

// ErrNoSuchToken says that the tenant has no token of this ID.
var ErrNoSuchToken = errors.New("no such token")

// New checks the configuration; it reads nothing.
func New(cfg Config) (*Tokens, error) {
	if cfg.Store == nil || cfg.Now == nil || cfg.Random == nil || cfg.NewID == nil {
		return nil, errors.New("access: Store, Now, Random and NewID are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Tokens{Config: cfg, cache: newCache()}, nil
}

// Request is what a new token is to be.
type Request struct {
	Name    string // up to 100 characters; may be empty
	Scopes  []Scope
	Expires time.Time // zero: never
}

// Check gives what is wrong with a request, as joined *invalid.Error.
func (r Request) Check(now time.Time) error {
	var errs []error
	if !validName.MatchString(r.Name) {
		errs = append(errs, invalid.Field("name", r.Name, "at most 100 characters, none of them a control character"))
	}
	if len(r.Scopes) == 0 {
		errs = append(errs, invalid.Missing("scopes", "at least one of "+ScopeNames()))
	}
	for i, s := range r.Scopes {
		field := fmt.Sprintf("scopes[%d]", i)
		if !slices.Contains(Scopes, s) {
			errs = append(errs, invalid.Field(field, string(s), "one of "+ScopeNames()))
		} else if slices.Index(r.Scopes, s) < i {
			errs = append(errs, invalid.Field(field, string(s), "each scope once"))
		}
	}
	if !r.Expires.IsZero() && !r.Expires.After(now) {
		errs = append(errs, invalid.Field("expires", r.Expires.Format(time.RFC3339), "a time to come"))
	}
	return errors.Join(errs...)
}

// Create makes a token of a tenant. text is what its owner gives with each request; it is nowhere else, not even in the store.
//
// When the answer of the write is lost, the token may stand without anybody who knows its text: it is listed, can be revoked,
// and lets nobody in.
func (s *Tokens) Create(ctx context.Context, tenant string, r Request) (text string, t Token, err error) {
	if err := errors.Join(ValidTenant(tenant), r.Check(s.Now())); err != nil {
		return "", Token{}, err
	}
	text, t, err = s.add(ctx, Token{Tenant: tenant, Name: r.Name, Scopes: r.Scopes, Expires: r.Expires})
	if err == nil {
		s.Log.InfoContext(ctx, "a token was made", "token", t.ID, "name", t.Name, "tenant", tenant, "scopes", t.Scopes)
	}
	return text, t, err
}

// add draws a secret for a token and stores it.
func (s *Tokens) add(ctx context.Context, t Token) (text string, _ Token, err error) {
	id, text, err := draw(s.Random)
	if err != nil {
		return "", Token{}, err
	}
	// A slow hash protects what people choose, because there are few enough of those to try. 256 random bits cannot be tried at
	// any speed, and a slow hash on every request would only be a way to keep the server busy.
	hash := sha256.Sum256([]byte(text))
	t.ID, t.hash, t.Created = id, hash[:], s.Now().UTC().Truncate(time.Millisecond)
	if !t.Expires.IsZero() {
		t.Expires = t.Expires.UTC().Truncate(time.Millisecond)
	}
	if t.version, err = s.put(ctx, t, store.Absent); err != nil {
		return "", Token{}, fmt.Errorf("store the token: %w", err)
	}
	return text, t, nil
}

// put writes a token and its place in the list, both or none, and gives the token's new version.
func (s *Tokens) put(ctx context.Context, t Token, only store.Cond) (uint64, error) {
	value, err := t.encode()
	if err != nil {
		return 0, err
	}
	place, err := record.Encode(listed{})
	if err != nil {
		return 0, err
	}
	var until time.Time
	switch {
	case t.Parent != "":
		until = t.Expires // sessions are many, and what became of one matters to nobody for long
	case !t.Revoked.IsZero():
		until = t.Revoked.Add(keepEnded)
	case !t.Expires.IsZero():
		until = t.Expires.Add(keepEnded)
	}
	attempt := s.NewID()
	versions, err := s.Store.Write(ctx,
		store.Op{Kind: store.Put, Key: keyOf(t.ID), If: only, Value: value, Expires: until, Attempt: attempt},
		store.Op{Kind: store.Put, Key: listKey(t.Tenant, t.ID), Value: place, Expires: until, Attempt: attempt})
	if err != nil {
		return 0, err
	}
	return versions[0], nil
}

// get reads a token; version 0 where there is none.
func (s *Tokens) get(ctx context.Context, id string) (Token, error) {
	items, err := s.Store.Get(ctx, keyOf(id))
	if err != nil || !items[0].Exists() {
		return Token{}, err
	}
	return decode(items[0])
}

// Revoke ends a token, for good. This process refuses it from now on; others do within CacheFor. Revoking it again changes
// nothing.
func (s *Tokens) Revoke(ctx context.Context, tenant, id string) error {
	if !validID.MatchString(id) {
		return ErrNoSuchToken
	}
	var err error
	for range changeTries {
		var t Token
		if t, err = s.get(ctx, id); err != nil {
			return fmt.Errorf("revoke token %s: %w", id, err)
		}
		if t.version == 0 || t.Tenant != tenant {
			return ErrNoSuchToken
		}
		if !t.Revoked.IsZero() {
			return nil
		}
		t.Revoked = s.Now()
		if t.version, err = s.put(ctx, t, store.Version(t.version)); err == nil {
			s.cache.learn(t, s.Now())
			s.Log.InfoContext(ctx, "a token was revoked", "token", id, "name", t.Name, "tenant", tenant)
			return nil
		}
		if store.AsConflict(err) == nil {
			break
		}
	}
	return fmt.Errorf("revoke token %s: %w", id, err)
}

// Find gives a token of any tenant, for whoever has the store itself in hand.
func (s *Tokens) Find(ctx context.Context, id string) (Token, error) {
	if !validID.MatchString(id) {
		return Token{}, ErrNoSuchToken
	}
	t, err := s.get(ctx, id)
	if err != nil {
		return Token{}, fmt.Errorf("find token %s: %w", id, err)
	}
	if t.version == 0 {
		return Token{}, ErrNoSuchToken
	}
	return t, nil
}

// List gives a page of a tenant's tokens, by ID, those that ended in the last 30 days included. cursor is next of the page
// before, "" for the first.
func (s *Tokens) List(ctx context.Context, tenant, cursor string, limit int) (tokens []Token, next string, err error) {
	if err := ValidTenant(tenant); err != nil {
		return nil, "", err
	}
	r := listOf(tenant)
	r.Limit, r.Cursor = min(limit, store.MaxKeys), cursor
	return s.page(ctx, r)
}

func listOf(tenant string) store.Range {
	return store.Range{Partition: list, From: tenant + "/", To: tenant + "0"}
}

// After is the cursor of a page that ends with this token, in place of the one that List gave.
func After(t Token) string { return listOf(t.Tenant).After(listKey(t.Tenant, t.ID).Sort) }

// All is List over all tenants, for whoever has the store itself in hand.
func (s *Tokens) All(ctx context.Context, cursor string, limit int) (tokens []Token, next string, err error) {
	return s.page(ctx, store.Range{Partition: list, Limit: min(limit, store.MaxKeys), Cursor: cursor})
}

func (s *Tokens) page(ctx context.Context, r store.Range) ([]Token, string, error) {
	if r.Limit < 1 {
		r.Limit = store.MaxKeys
	}
	page, err := s.Store.Query(ctx, r)
	if err != nil {
		return nil, "", fmt.Errorf("list tokens: %w", err)
	}
	keys := make([]store.Key, len(page.Items))
	for i, item := range page.Items {
		keys[i] = keyOf(item.Sort[len(item.Sort)-2*idBytes:])
	}
	items, err := s.Store.Get(ctx, keys...)
	if err != nil {
		return nil, "", fmt.Errorf("list tokens: %w", err)
	}
	var tokens []Token
	for _, item := range items {
		if !item.Exists() {
			continue // it expired a moment before its place in the list
		}
		t, err := decode(item)
		if err != nil {
			return nil, "", err
		}
		tokens = append(tokens, t)
	}
	return tokens, page.Cursor, nil
}

// Any tells whether there is a token of any tenant that lets somebody in. Sessions do not count: they let nobody in whose token does not.
func (s *Tokens) Any(ctx context.Context) (bool, error) {
	cursor := ""
	for {
		tokens, next, err := s.All(ctx, cursor, store.MaxKeys)
		if err != nil {
			return false, err
		}
		now := s.Now()
		if slices.ContainsFunc(tokens, func(t Token) bool { return t.Parent == "" && t.Ended(now) == "" }) {
			return true, nil
		}
		if cursor = next; cursor == "" {
			return false, nil
		}
	}
}
