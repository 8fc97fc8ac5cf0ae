package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// GateConfig is how callers are let in. Fields without a default are required.
type GateConfig struct {
	Tokens *Tokens
	Now    func() time.Time

	// Required refuses who gives no token. Else they may do everything as Tenant; a token that is given counts in any case.
	Required bool

	// Tenant is whose the server is: only tokens of it see what concerns the server as a whole. Default DefaultTenant
	Tenant string

	Rate  float64 // requests a second for each token; 0: no limit
	Burst int     // how many of them at once. Default: one second's worth

	Requests int // under way at once, those that wait for work not counted. Default 512
	Waiting  int // requests that wait for work, at once. Default 4096

	Log *slog.Logger // default: discards
}

// DefaultTenant owns what belongs to nobody else.
const DefaultTenant = "default"

// How often an address may give a token that is none: enough for a fleet that starts with an old one, too few to guess by.
const (
	failRate  = 1 // a second
	failBurst = 20
)

// How often a wrong token is worth a line in the log, from all addresses together.
const (
	toldRate  = 1 // a second
	toldBurst = 10
)

// Gate says who calls and whether there is room for the call. It is safe for concurrent use.
type Gate struct {
	GateConfig
	callers  *limiter // by token
	failures *limiter // by address
	told     *limiter // of wrong tokens, in the log
	sessions *limiter // by the token that opens them

	mu      sync.Mutex
	busy    taken // by requests under way
	waiting taken // by those that wait for work
}

// NewGate checks the configuration.
func NewGate(cfg GateConfig) (*Gate, error) {
	if cfg.Tokens == nil || cfg.Now == nil {
		return nil, errors.New("access: Tokens and Now are required")
	}
	if cfg.Tenant == "" {
		cfg.Tenant = DefaultTenant
	}
	if cfg.Burst == 0 {
		cfg.Burst = max(1, int(cfg.Rate))
	}
	if cfg.Requests == 0 {
		cfg.Requests = 512
	}
	if cfg.Waiting == 0 {
		cfg.Waiting = 4096
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Gate{GateConfig: cfg, callers: newLimiter(cfg.Rate, cfg.Burst), failures: newLimiter(failRate, failBurst),
		told: newLimiter(toldRate, toldBurst), sessions: newLimiter(sessionRate, sessionBurst),
		busy: taken{by: map[string]int{}}, waiting: taken{by: map[string]int{}}}, nil
}

// Caller is who makes a request.
type Caller struct {
	Tenant string
	Token  string // ID; "" for a caller who was not asked for a token
	Parent string // ID of the token of which Token is a session, "" for a token of its own
	Name   string // of the token
	Scopes []Scope
	Host   bool // sees what concerns the server as a whole

	Expires time.Time // of the token; zero: never
}

// root is the token by whose right the caller is there: a session shares the bounds of its token.
func (c Caller) root() string {
	if c.Parent != "" {
		return c.Parent
	}
	return c.Token
}

// May tells whether the caller may do what asks for this scope.
func (c Caller) May(asked Scope) bool { return Grants(c.Scopes, asked) }

// Unauthenticated says that the caller has to give a token, or another one. It tells nothing about what is there.
type Unauthenticated struct {
	Message string
	Given   bool // a token was given, and is no good
}

func (u *Unauthenticated) Error() string { return u.Message }

// Limited says that the caller has to wait. Nothing was done.
type Limited struct {
	Message    string
	RetryAfter time.Duration
}

func (l *Limited) Error() string { return l.Message }

// Admit gives the caller whose token this is ("" for none), who calls from an address. The errors are *Unauthenticated,
// *Limited, and those of the store.
func (g *Gate) Admit(ctx context.Context, text string, from netip.Addr) (Caller, error) {
	now := g.Now()
	if text == "" {
		if g.Required {
			return Caller{}, &Unauthenticated{Message: "Belfry wants to know who calls: give a token, as Authorization: Bearer bel_…"}
		}
		return Caller{Tenant: g.Tenant, Scopes: []Scope{Admin}, Host: true}, nil
	}
	// Who guesses is slowed down, and does not take others along who share the address and have given a good token before.
	address := Network(from)
	if wait := g.failures.empty(address, now); wait > 0 && !g.Tokens.proven(text) {
		return Caller{}, &Limited{Message: "Too many wrong tokens came from this address. Try again later.", RetryAfter: wait}
	}
	t, err := g.Tokens.Check(ctx, text)
	var ended *Ended
	switch {
	case err == nil:
	case errors.As(err, &ended), errors.Is(err, ErrNoToken):
		g.failures.take(address, now)
		if g.told.take("", now) == 0 {
			g.Log.WarnContext(ctx, "a caller was refused for a token that is not good", "address", from.String(), "token", IDOf(text), "reason", err.Error())
		}
		return Caller{}, &Unauthenticated{Given: true, Message: g.wrong(ended)}
	default:
		return Caller{}, err
	}
	c := Caller{Tenant: t.Tenant, Token: t.ID, Parent: t.Parent, Name: t.Name, Scopes: t.Scopes, Host: t.Tenant == g.Tenant, Expires: t.Expires}
	if wait := g.callers.take(c.root(), now); wait > 0 {
		return Caller{}, &Limited{RetryAfter: wait,
			Message: fmt.Sprintf("The token %s makes more than %g requests a second. Nothing was done.", c.root(), g.Rate)}
	}
	return c, nil
}

func (g *Gate) wrong(ended *Ended) string {
	switch {
	case ended != nil && ended.Session:
		return "The session " + ended.Why + ". Open a new one with a token."
	case ended != nil:
		return "The token " + ended.Why + ". Ask for a new one."
	case !g.Required:
		return "The token is not one of this server, which asks for none: leave it out."
	}
	return "The token is not one of this server."
}

// Network is whom an address stands for: a host, or, with IPv6, the network that one subscriber has to choose addresses from.
func Network(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() {
		if network, err := a.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return a.String()
}

// BatchPlaces is how many places a request takes whose body may be sixteen times as large as that of others.
const BatchPlaces = 16

// Enter takes places for a request under way, until leave is called; *Limited where there are too few. One token gets half of
// them at most, as does one tenant beside that of the server, so that there is room for others.
func (g *Gate) Enter(c Caller, places int) (leave func(), err error) {
	return g.take(&g.busy, g.Requests, c, places)
}

// Wait is Enter for a request that waits for work. It does little meanwhile, and has places of its own.
func (g *Gate) Wait(c Caller) (leave func(), err error) {
	return g.take(&g.waiting, g.Waiting, c, 1)
}

// taken counts places, in all and by who has a share of them.
type taken struct {
	all int
	by  map[string]int
}

func (t *taken) add(shares []string, places int) {
	t.all += places
	for _, of := range shares {
		if t.by[of] += places; t.by[of] == 0 {
			delete(t.by, of)
		}
	}
}

func (g *Gate) take(t *taken, most int, c Caller, places int) (leave func(), err error) {
	share, shares := most, []string(nil)
	if c.Token != "" {
		share, shares = max(1, most/2), []string{"token " + c.root()}
		if !c.Host {
			shares = append(shares, "tenant "+c.Tenant)
		}
	}
	places = min(places, share)
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.all+places > most || slices.ContainsFunc(shares, func(of string) bool { return t.by[of]+places > share }) {
		return nil, full()
	}
	t.add(shares, places)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		t.add(shares, -places)
	}, nil
}

func full() *Limited {
	return &Limited{Message: "Too many requests are under way. Nothing was done.", RetryAfter: time.Second}
}
