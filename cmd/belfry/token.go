package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, see and revoke the tokens that let callers in",
		Long: `Make, see and revoke the tokens that let callers in. These commands ask a server, which wants a token with the scope
admin, and are about the tenant of that token. With --data they work on the data folder of a stopped server instead, with --store
on the table that servers share, and need no token: so the first one is made, and so are those of other tenants.`,
	}
	cmd.AddCommand(c.tokenCreate(), c.tokenList(), c.tokenRevoke())
	return cmd
}

// tokenPlace is where tokens are kept: with a server, in the folder of one that is stopped, or in a table.
type tokenPlace struct{ data, store string }

func (p *tokenPlace) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.data, "data", "", "data folder `DIR` of a stopped server, instead of asking one that runs")
	cmd.Flags().StringVar(&p.store, "store", "", "`URL` of a table that servers share, instead of asking one of them: dynamodb://TABLE")
}

// tokenKeeper is what both places can do.
type tokenKeeper interface {
	create(ctx context.Context, tenant string, r wire.TokenRequest) (wire.NewToken, error)
	list(ctx context.Context, tenant string) iter.Seq2[wire.Token, error]
	revoke(ctx context.Context, id string) error
}

// using calls do with the tokens of the place.
func (p *tokenPlace) using(c *cli, do func(ctx context.Context, tokens tokenKeeper, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		switch {
		case p.data != "" && p.store != "":
			return misused("want one of --data and --store")
		case p.store != "":
			opened, err := openTable(cmd.Context(), p.store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, opened.Close()) }()
			return onKept(cmd.Context(), opened, args, do)
		case p.data == "":
			if tenant := cmd.Flags().Lookup("tenant"); tenant != nil && tenant.Changed {
				return misused("--tenant needs --data or --store: a server tells the tenant by the token that asks, and only who has its data speaks for others")
			}
			return c.calling(func(ctx context.Context, server *client.Client, args []string) error {
				return do(ctx, served{server}, args)
			})(cmd, args)
		}
		if _, err := os.Stat(embed.StoreFolder(p.data)); err != nil && cmd.Name() != "create" {
			return fmt.Errorf("there is no store in %s: %w", p.data, err)
		}
		opened, err := openStore(p.data, discardLog(), func() time.Time { return time.Unix(0, 0) }) // cleans nothing up
		if err != nil {
			return fmt.Errorf("%w. To ask the server that runs there, leave --data out", err)
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		return onKept(cmd.Context(), opened, args, do)
	}
}

// onKept does something with the tokens of a store.
func onKept(ctx context.Context, on store.Store, args []string, do func(ctx context.Context, tokens tokenKeeper, args []string) error) error {
	tokens, err := openTokens(on, discardLog())
	if err != nil {
		return err
	}
	return do(ctx, kept{tokens}, args)
}

// served are the tokens of a server.
type served struct{ server *client.Client }

func (s served) create(ctx context.Context, _ string, r wire.TokenRequest) (wire.NewToken, error) {
	return s.server.CreateToken(ctx, r)
}
func (s served) list(ctx context.Context, _ string) iter.Seq2[wire.Token, error] {
	return s.server.Tokens(ctx)
}
func (s served) revoke(ctx context.Context, id string) error { return s.server.RevokeToken(ctx, id) }

// kept are the tokens of a folder.
type kept struct{ tokens *access.Tokens }

func (k kept) create(ctx context.Context, tenant string, r wire.TokenRequest) (wire.NewToken, error) {
	want := access.Request{Name: r.Name}
	for _, s := range r.Scopes {
		want.Scopes = append(want.Scopes, access.Scope(s))
	}
	if r.ExpiresIn != 0 {
		want.Expires = time.Now().Add(r.ExpiresIn.Std())
	}
	if tenant == "" {
		tenant = access.DefaultTenant
	}
	text, made, err := k.tokens.Create(ctx, tenant, want)
	if err != nil {
		return wire.NewToken{}, err
	}
	return wire.NewToken{Token: api.TokenForm(made), Secret: text}, nil
}

// list gives the tokens of a tenant, of all for "".
func (k kept) list(ctx context.Context, tenant string) iter.Seq2[wire.Token, error] {
	return func(yield func(wire.Token, error) bool) {
		for cursor := ""; ; {
			tokens, next, err := k.tokens.All(ctx, cursor, 0)
			if tenant != "" {
				tokens, next, err = k.tokens.List(ctx, tenant, cursor, 0)
			}
			if err != nil {
				yield(wire.Token{}, err)
				return
			}
			for _, t := range tokens {
				if !yield(api.TokenForm(t), nil) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

func (k kept) revoke(ctx context.Context, id string) error {
	t, err := k.tokens.Find(ctx, id)
	if errors.Is(err, access.ErrNoSuchToken) {
		return exiting(exitNotFound, err)
	}
	if err != nil {
		return err
	}
	return k.tokens.Revoke(ctx, t.Tenant, id)
}

func (c *cli) tokenCreate() *cobra.Command {
	var p tokenPlace
	var r wire.TokenRequest
	var tenant, expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token; its secret is shown this once",
		Long: `Make a token. Its secret is shown this once and kept nowhere, so put it where it is needed: the configuration has it as
"belfry config set token -" or in a file that --token-file names, scripts have it as BELFRY_TOKEN.

Scopes: read sees jobs, runs, results and logs; run starts, cancels and retries runs; write changes jobs, and brings read
and run; work is for workers; admin makes tokens, keeps secrets, takes backups, and brings all others.`,
		Example: `  belfry token create --scope admin --name operator --data /var/lib/belfry
  belfry token create --scope read,run --name deploys --expires 90d
  belfry token create --scope write --tenant acme --data /var/lib/belfry`,
		Args: cobra.NoArgs,
		RunE: p.using(c, func(ctx context.Context, tokens tokenKeeper, _ []string) error {
			if len(r.Scopes) == 0 {
				return misused("want --scope, one or more of %s", access.ScopeNames())
			}
			for _, s := range r.Scopes {
				if !slices.Contains(access.Scopes, access.Scope(s)) {
					return misused("--scope %q: want one of %s", s, access.ScopeNames())
				}
			}
			if expires != "" {
				d, err := schedule.ParseDuration(expires)
				if err != nil || d <= 0 {
					return misused("--expires %q: want a duration such as 90d or 12h", expires)
				}
				r.ExpiresIn = d
			}
			made, err := tokens.create(ctx, tenant, r)
			if err != nil {
				return err
			}
			return show(c, made, func(made wire.NewToken) [][2]string {
				return [][2]string{{"token", made.Secret}, {"id", made.ID}, {"name", made.Name}, {"tenant", made.Tenant},
					{"scopes", strings.Join(made.Scopes, ", ")}, {"expires", clock(made.ExpiresAt)},
					{"", "Keep the token now: it is not shown again."}}
			})
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.Scopes, "scope", nil, "`SCOPES`, what it allows: "+access.ScopeNames()+"; more than once or with commas for several")
	f.StringVar(&r.Name, "name", "", "`NAME` that says what it is for")
	f.StringVar(&expires, "expires", "", "how long it is good for: a `DURATION`, such as 90d; until it is revoked by default")
	f.StringVar(&tenant, "tenant", "", "`TENANT` whose it is; with --data. "+access.DefaultTenant+" by default")
	p.flags(cmd)
	return cmd
}

func (c *cli) tokenList() *cobra.Command {
	var p tokenPlace
	var tenant string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens, without their secrets",
		Long: `List tokens, those included that expired or were revoked in the last 30 days. USED is when a token was last used, to
the hour. With --data the tokens of all tenants are listed.`,
		Example: `  belfry token list
  belfry token list --data /var/lib/belfry --tenant acme`,
		Args: cobra.NoArgs,
		RunE: p.using(c, func(ctx context.Context, tokens tokenKeeper, _ []string) error {
			headings := []string{"ID", "NAME", "TENANT", "SCOPES", "STATE", "EXPIRES", "USED"}
			return list(c, tokens.list(ctx, tenant), 0, headings, func(t wire.Token) []string {
				return []string{t.ID, t.Name, t.Tenant, strings.Join(t.Scopes, ","), tokenState(t, c.now()), clock(t.ExpiresAt), clock(t.UsedAt)}
			})
		}),
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only of this `TENANT`; with --data")
	p.flags(cmd)
	return cmd
}

func tokenState(t wire.Token, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return "expired"
	}
	return "active"
}

func (c *cli) tokenRevoke() *cobra.Command {
	var p tokenPlace
	cmd := &cobra.Command{
		Use:   "revoke TOKEN...",
		Short: "End tokens for good",
		Long: fmt.Sprintf(`End tokens for good. The server that is asked refuses them at once, others on the same store within %s; requests
under way go on to their end. TOKEN is a token's ID, as the list shows it, never the token itself.`, access.CacheFor),
		Example: `  belfry token revoke 0f3a5b7c9d1e2f40
  belfry token revoke 0f3a5b7c9d1e2f40 --data /var/lib/belfry`,
		Args: cobra.MinimumNArgs(1),
		RunE: p.using(c, func(ctx context.Context, tokens tokenKeeper, args []string) error {
			for _, id := range args {
				if strings.HasPrefix(id, "bel_") {
					return misused("TOKEN: want the ID, which stands between the first and the second underscore; the token itself now stands in your shell's history")
				}
				if err := tokens.revoke(ctx, id); err != nil {
					return fmt.Errorf("%s: %w", id, err)
				}
				if !c.structured() {
					fmt.Fprintf(c.stdout, "%s is revoked\n", id)
				}
			}
			return nil
		}),
	}
	p.flags(cmd)
	return cmd
}
