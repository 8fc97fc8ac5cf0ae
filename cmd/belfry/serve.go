package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// What dev begins with.
const (
	devData       = ".belfry"
	devListen     = "127.0.0.1:7340"
	defaultTenant = access.DefaultTenant
)

// settings are what dev and serve are told.
type settings struct {
	data        string
	listen      string
	hosts       []string
	allowExec   bool
	addresses   target.AddressPolicy
	secrets     secretFlags
	pools       poolFlags
	concurrency int
	lease       time.Duration
	grace       time.Duration
	logFormat   string
	logLevel    string
	local       bool // only this machine may call; dev insists on it
	door        door
}

func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", devListen, "`HOST:PORT` to listen on; port 0 takes a free one")
	f.StringArrayVar(&s.hosts, "host", nil, "`NAME` that requests may call this server by, beside loopback ones; may be given more than once")
	f.BoolVar(&s.allowExec, "allow-exec", false, "let jobs start processes on this host, as this user")
	f.IntVar(&s.concurrency, "concurrency", 50, "`NUMBER` of attempts at once, for each queue")
	s.pools.flags(cmd)
	f.DurationVar(&s.lease, "lease", 30*time.Second, "how long a worker holds a run without renewing: a `DURATION`")
	f.DurationVar(&s.grace, "grace", 20*time.Second, "how long running attempts may go on when the server is stopped: a `DURATION`")
	f.StringVar(&s.logFormat, "log-format", "auto", "`FORM` of the log: text, json, or auto: text on a terminal")
	f.StringVar(&s.logLevel, "log-level", "info", "least `LEVEL` that is logged: debug, info, warn or error")
	addressFlags(cmd, &s.addresses)
	s.secrets.sources(cmd)
	s.secrets.keys(cmd)
}

func (s *settings) check() error {
	if s.concurrency < 1 || s.concurrency > 10_000 {
		return misused("--concurrency %d: want 1 to 10000", s.concurrency)
	}
	if s.lease < time.Second || s.lease > time.Hour {
		return misused("--lease %s: want 1s to 1h", s.lease)
	}
	if s.grace < 0 || s.grace > time.Hour {
		return misused("--grace %s: want 0s to 1h", s.grace)
	}
	host, port, err := net.SplitHostPort(s.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return misused("--listen %q: want HOST:PORT, as in %s, the port 0 to 65535", s.listen, devListen)
	}
	loopback := isLoopback(host)
	if s.local && !loopback {
		return misused("--listen %s: dev listens on loopback alone, as in %s; belfry serve listens elsewhere", s.listen, devListen)
	}
	s.local = loopback
	if err := s.secrets.check(); err != nil {
		return err
	}
	return s.door.check(s.listen, loopback)
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || host == "localhost"
}

func (c *cli) dev() *cobra.Command {
	s := settings{local: true, door: door{auth: authAuto, burst: 1, requests: 512}, addresses: target.AddressPolicy{AllowLoopback: true}}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a scheduler here, for this machine alone",
		Long: `Run a whole scheduler in this process: API, ticks and workers, its data in one folder. Jobs may call servers of
this machine. Only this machine may call the API, and no web page may.`,
		Example: `  belfry dev
  belfry dev --data /tmp/belfry --listen 127.0.0.1:8080 --allow-exec`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.data == "" {
				return misused("--data is empty: want a folder, as in --data %s", devData)
			}
			s.secrets.makeKey = filepath.Join(s.data, "secrets.key")
			return c.serveWith(cmd.Context(), s)
		},
	}
	cmd.Flags().StringVar(&s.data, "data", devData, "data folder `DIR`, made when it is not there")
	s.flags(cmd)
	return cmd
}

func (c *cli) serve() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a scheduler as a service",
		Long: `Run a whole scheduler in this process, as dev does, without dev's loosening: jobs reach no address of this host
unless that is allowed. It listens on loopback unless told otherwise, and asks nobody there for a token unless
--auth required says so. Beyond loopback it asks everybody, and wants TLS or a proxy that ends it. Before it
starts there must be a token, which "belfry token create --scope admin --data DIR" makes.`,
		Example: `  belfry serve --data /var/lib/belfry
  belfry serve --data /var/lib/belfry --listen :7340 --tls-cert cert.pem --tls-key key.pem
  belfry serve --data /var/lib/belfry --listen 10.0.0.5:7340 --behind-proxy --concurrency 200`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.data == "" {
				return misused("want --data DIR, or BELFRY_DATA")
			}
			return c.serveWith(cmd.Context(), s)
		},
	}
	cmd.Flags().StringVar(&s.data, "data", "", "data folder `DIR`, made when it is not there")
	s.flags(cmd)
	s.door.flags(cmd)
	return cmd
}

// serveWith runs the server until a signal or ctx ends it. The first signal lets what runs end within the grace; a second
// one ends the process at once.
func (c *cli) serveWith(ctx context.Context, s settings) error {
	began := time.Now()
	if err := s.check(); err != nil {
		return err
	}
	log, err := newLog(c.stderr, s.logFormat, s.logLevel)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	listener, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // again, when the server has done it
	p, err := openProcess(ctx, s, log)
	if err != nil {
		return err
	}
	server := api.Server(p.handler, log)
	served := make(chan error, 1)
	go func() { served <- serveOn(server, listener, p.certificate, s.door.behindProxy) }()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- p.node.Run(running) }()

	c.greet(s, listener.Addr().String(), time.Since(began))

	var cause error
	select {
	case got := <-signals:
		log.Info("stopping; a second signal ends at once", "signal", got.String(), "grace", s.grace.String())
	case <-ctx.Done():
		log.Info("stopping", "grace", s.grace.String())
	case cause = <-served:
		cause = fmt.Errorf("serve: %w", cause)
		served <- nil
	case cause = <-worked:
		cause = fmt.Errorf("the scheduler stopped: %w", errors.Join(cause, errors.New("its work ended unasked")))
		worked <- nil
	case <-p.data.Failed():
		// What is under way can be neither finished nor acknowledged; waiting for it would only delay the restart.
		return errors.New("the disk failed, and the store stopped: see the log. Nothing that was acknowledged is lost")
	}

	drained := make(chan error, 1)
	go func() { drained <- drain(server, stop, worked, served, p, s.grace) }()
	select {
	case err := <-drained:
		return errors.Join(cause, err)
	case <-signals:
		return errors.New("ended at once; what ran is taken up at the next start")
	case <-p.data.Failed():
		return errors.New("the disk failed while stopping: see the log. Nothing that was acknowledged is lost")
	}
}

// drain ends the parts in the order in which they need each other: requests and attempts, then what they stand on.
func drain(server *http.Server, stop func(), worked, served <-chan error, p *process, grace time.Duration) error {
	stop()
	// A little longer than the attempts, so that who asks for their outcome gets it.
	ctx, cancel := context.WithTimeout(context.Background(), grace+2*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, <-worked, p.data.Close())
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var how net.ListenConfig
	listener, err := how.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use, perhaps by another Belfry; choose another with --listen", address)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// greet tells where the server is, and what to try next.
func (c *cli) greet(s settings, address string, took time.Duration) {
	url := "http://" + reachable(address)
	if s.door.tlsCert != "" {
		url = "https://" + reachable(address)
	}
	data, err := filepath.Abs(s.data)
	if err != nil {
		data = s.data
	}
	if c.structured() {
		_ = c.print(map[string]string{"address": url, "data": data, "version": thisBuild().Version})
		return
	}
	fmt.Fprintf(c.stdout, "Belfry %s is ready after %s.\n  address  %s\n  data     %s\n", thisBuild().Version, took.Round(time.Millisecond), url, data)
	if s.addresses.AllowLoopback && s.door.auth != authRequired {
		fmt.Fprintf(c.stdout, "Give it a job that runs every two seconds, and see its runs, from another terminal:\n  %s\n", firstJob(os.Args[0], url, s.allowExec))
	}
}

// reachable is where this machine reaches a server that listens on an address: a wildcard is nowhere to call.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err == nil && bad == nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return address
}

// firstJob is a line to paste; this command is called there as it was here.
func firstJob(command, url string, allowExec bool) string {
	job := `{"schedule":{"every":"2s"},"target":{"http":{"url":"` + url + `/healthz","method":"GET"}}}`
	if allowExec {
		job = `{"schedule":{"every":"2s"},"target":{"exec":{"argv":["echo","hello"]}}}`
	}
	there := ""
	if url != client.DefaultAddress {
		there = " --address " + url
	}
	return `echo '` + job + `' | ` + command + ` job apply hello -f -` + there + `; sleep 5; ` + command + ` run list` + there
}
