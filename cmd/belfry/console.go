package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/console"
)

// consoleSettings are what console is told.
type consoleSettings struct {
	listen   string
	readOnly bool
	open     bool
}

func (c *cli) console() *cobra.Command {
	var s consoleSettings
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Show the console of a server or a stack on AWS, here",
		Long: `Show the console of a server or of a stack on AWS in a browser on this machine. The pages come from this process, and what
they ask for goes to the server of the profile, with the profile's token, API key or AWS credentials. The browser never
gets those, and nothing is deployed.

Only this machine can reach the console, and only the tabs that were opened with an address that it prints. Each address
opens one tab; then the next one is printed. With --read-only no request that changes anything is passed on.`,
		Example: `  belfry console
  belfry console --profile prod --read-only
  belfry console --profile prod --listen 127.0.0.1:7350 --open`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			return c.consoleWith(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:0", "loopback `HOST:PORT` to listen on; port 0 takes a free one")
	f.BoolVar(&s.readOnly, "read-only", false, "pass on nothing that changes anything")
	f.BoolVar(&s.open, "open", false, "open the address in this machine's browser")
	return cmd
}

func (s *consoleSettings) check() error {
	host, port, err := net.SplitHostPort(s.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		return misused("--listen %q: want HOST:PORT, as in 127.0.0.1:0, the port 0 to 65535", s.listen)
	case !isLoopback(host):
		return misused("--listen %s: the console listens on loopback alone, as in 127.0.0.1:0, because it calls the server with your credentials; for others let \"belfry serve\" show a console", s.listen)
	}
	return nil
}

// consoleWith shows the console until a signal or ctx ends it.
func (c *cli) consoleWith(ctx context.Context, s consoleSettings) error {
	log, err := newLog(c.stderr, "auto", "warn")
	if err != nil {
		return err
	}
	up, err := c.upstream()
	if err != nil {
		return err
	}
	signals := asksToStop(ctx, log, c.stderr)
	listener, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // again, when the server has done it
	at, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil || !at.Addr().IsLoopback() { // where "localhost" is another address
		return misused("--listen %s is %s here, and the console listens on loopback alone: want 127.0.0.1:0", s.listen, listener.Addr())
	}
	pages, err := console.New(console.Config{Prefix: api.ConsolePath, Key: true, Flags: c.consoleFlags()})
	if err != nil {
		return err
	}
	shown := "http://" + at.String() + api.ConsolePath
	desk := &desk{now: c.now, readOnly: s.readOnly, profile: c.config.profile.text}
	server := api.Server(api.Loopback(pages, newRelay(up, desk), log), log)
	served := make(chan error, 1)
	go func() { served <- serveOn(server, listener, nil, false) }()
	defer server.Close()

	addressOf := func(key string) string { return shown + "#key=" + key }
	first := desk.open(func(next string) { c.nextAddress(addressOf(next)) })
	if err := c.greetConsole(s, addressOf(first)); err != nil {
		return err
	}
	if s.open {
		if remove, err := openBrowser(ctx, addressOf(first)); err != nil {
			c.warn("no browser could be opened: %v; open the address yourself", err)
		} else {
			defer remove()
		}
	}
	select {
	case <-signals:
	case <-ctx.Done():
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	}
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), consoleGrace)
	defer cancel()
	if err := server.Shutdown(over); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// consoleGrace is what requests under way have to be answered when the command is ended.
const consoleGrace = 2 * time.Second

// consoleFlags are those by which the commands that pages show call the same server.
func (c *cli) consoleFlags() string {
	address := c.config.settings["address"]
	if address.from.kind == fromFile {
		return "--profile " + c.config.profile.text
	}
	return "--address " + address.text
}

// shownCredential says with what the server is called.
func (c *cli) shownCredential() string {
	switch {
	case c.config.auth == authIAM && c.signing != nil:
		return "signed with AWS credentials, " + c.signing.whose
	case c.sent().text == "":
		return "without a token"
	}
	return "with the " + c.calledSecret() + " from " + c.sent().from.String()
}

func (c *cli) greetConsole(s consoleSettings, address string) error {
	if c.config.unsent != "" {
		c.warn("%s", c.config.unsent)
	}
	may := "read and change"
	if s.readOnly {
		may = "read only"
	}
	if c.structured() {
		return c.print(map[string]any{"console": address, "server": c.address, "profile": c.config.profile.text, "auth": c.config.auth, "read_only": s.readOnly, "version": thisBuild().Version})
	}
	_, err := fmt.Fprintf(c.stdout, `Belfry %s shows the console of a server.
  server   %s
  profile  %s, %s
  allows   %s
  console  %s
The address opens one tab, and then another address is printed. Ctrl-C ends the console.
`, thisBuild().Version, c.address, c.config.profile.text, c.shownCredential(), may, address)
	return err
}

// nextAddress tells that an address was used, and prints another one.
func (c *cli) nextAddress(address string) {
	if c.structured() {
		_ = c.print(map[string]any{"console": address})
		return
	}
	fmt.Fprintf(c.stdout, "A tab has signed in at %s. For another tab:\n  console  %s\n", c.now().In(c.zone).Format(time.TimeOnly), address)
}

// openBrowser shows an address in the browser. Command lines can be seen by everybody on the host, so the browser is given a file that
// only this user can read, which leads to the address.
func openBrowser(ctx context.Context, address string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "belfry-console-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) } // the address in it is used up, or the console has ended
	page := filepath.Join(folder, "console.html")
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=` +
		html.EscapeString(address) + `"><title>Belfry</title>`
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		remove()
		return nil, err
	}
	words := []string{"xdg-open", page}
	switch runtime.GOOS {
	case "darwin":
		words[0] = "open"
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", page}
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if err := cmd.Start(); err != nil {
		remove()
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // it may last as long as the browser; the address was printed too
	return remove, nil
}

// upstream is the server that a console shows.
func (c *cli) upstream() (*upstream, error) {
	server, err := c.client()
	if err != nil {
		return nil, err
	}
	secret, err := c.secretShown()
	if err != nil {
		return nil, err
	}
	up := &upstream{profile: c.config.profile.text, whose: fmt.Sprintf("The server %s of profile %s", c.address, c.config.profile.text), explain: func(err error) string {
		said := strings.NewReplacer(".\n", ". ", "\n", ". ").Replace(strings.TrimPrefix(c.explain(err).Error(), c.address+": "))
		if secret != "" {
			said = strings.ReplaceAll(said, secret, "…") // some repeat what they were sent
		}
		return said
	}}
	up.client.Store(server)
	if file := c.config.settings[keyOfSecret(c.config.auth)+"_file"]; file.text != "" {
		up.again = func() (*client.Client, error) {
			again := *c
			again.stderr = io.Discard // its warnings were given
			return again.client()
		}
	}
	return up, nil
}
