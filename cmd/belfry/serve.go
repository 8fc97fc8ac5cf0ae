package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/api/compress"
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
	data        string      // "" with engines
	engines     engineFlags // serve alone has them
	ticks       tickFlags
	work        []string
	noWork      bool
	noTicks     bool
	listen      string
	hosts       []string
	allowExec   bool
	addresses   target.AddressPolicy
	aws         awsTargets
	mail        mailFlags
	secrets     secretFlags
	pools       poolFlags
	concurrency int
	lease       time.Duration
	catchUpRate int
	callbacks   callbackFlags
	grace       time.Duration
	log         logFlags
	trace       traceFlags
	local       bool // only this machine may call; dev insists on it
	door        door
	console     bool // show it
}

func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", devListen, "`HOST:PORT` to listen on; port 0 takes a free one")
	f.StringSliceVar(&s.hosts, "host", nil, "`NAME` that requests may call this server by, beside loopback ones; more than once or with commas for several")
	f.BoolVar(&s.allowExec, "allow-exec", false, "let jobs start processes on this host, as this user")
	f.IntVar(&s.concurrency, "concurrency", 50, "`NUMBER` of attempts at once, for each queue")
	f.BoolVar(&s.console, "console", true, "show the console to browsers, at /console")
	s.pools.flags(cmd)
	leaseFlag(cmd, &s.lease)
	catchUpFlag(cmd, &s.catchUpRate)
	s.callbacks.flags(cmd)
	f.DurationVar(&s.grace, "grace", 20*time.Second, "how long running attempts may go on when the server is stopped: a `DURATION`")
	s.log.flags(cmd)
	s.trace.flags(cmd)
	addressFlags(cmd, &s.addresses)
	s.aws.flags(cmd)
	s.mail.flags(cmd)
	s.secrets.sources(cmd)
	s.secrets.keys(cmd)
}

func (s *settings) check() error {
	if s.concurrency < 1 || s.concurrency > 10_000 {
		return misused("--concurrency %d: want 1 to 10000", s.concurrency)
	}
	if err := errors.Join(checkLease(s.lease), checkCatchUp(s.catchUpRate), s.checkRoles(), s.mail.check()); err != nil {
		return err
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

// checkRoles refuses what cannot be divided between processes.
func (s *settings) checkRoles() error {
	if err := s.engines.check(); err != nil {
		return err
	}
	switch {
	case s.engines.shared() && s.data != "":
		return misused("want one of --data and --store: a folder that this process has to itself, or a store that processes share")
	case s.engines.shared() && s.noWork && len(s.work) > 0:
		return misused("want one of --work and --no-work")
	case s.engines.shared():
		return s.ticks.check()
	case s.noWork || s.noTicks || len(s.work) > 0 || s.ticks != tickFlags{} && s.ticks != usualTicks:
		return misused("--work, --no-work, --no-ticks, --look-ahead, --tick-every and --shards are for processes that share a store: want --store with them")
	}
	return nil
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
this machine. Only this machine may call the API, and no web page may but those of the console, which it shows at /console.`,
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
starts there must be a token, which "belfry token create --scope admin --data DIR" makes.

With --data the process has a folder to itself, and needs nothing else. With --store, --queue-url and --blob it shares a
DynamoDB table, SQS queues and a bucket with other processes and with the functions of a deployed stack: any number of
them may serve, tick and work at once. --no-ticks, --work and --no-work leave parts to others. AWS's own settings
(AWS_REGION, AWS_PROFILE, a role) say who the process is there.`,
		Example: `  belfry serve --data /var/lib/belfry
  belfry serve --data /var/lib/belfry --listen :7340 --tls-cert cert.pem --tls-key key.pem
  belfry serve --data /var/lib/belfry --listen 10.0.0.5:7340 --behind-proxy --concurrency 200
  belfry serve --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs --queue gpu=6h --work default`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.data == "" && !s.engines.shared() {
				return misused("want --data DIR, or BELFRY_DATA; or --store, --queue-url and --blob for engines that processes share")
			}
			return c.serveWith(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.data, "data", "", "data folder `DIR`, made when it is not there")
	s.engines.flags(cmd)
	f.StringSliceVar(&s.work, "work", nil, "`QUEUE` that this process works on, with --store: one of default and those of --queue, all of them by default; more than once or with commas for several")
	f.BoolVar(&s.noWork, "no-work", false, "work on no queue, with --store: other processes or functions do")
	f.BoolVar(&s.noTicks, "no-ticks", false, "do not tick, with --store: other processes or functions do")
	s.ticks.flags(cmd)
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
	giveRoom()
	log, err := newLog(c.stderr, s.log.format, s.log.level)
	if err != nil {
		return err
	}
	signals := asksToStop(ctx, log, c.stderr)

	listener, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // again, when the server has done it
	p, err := openProcess(ctx, s, log)
	if err != nil {
		return err
	}
	server := api.Server(compress.Answers(p.handler, api.OnlyReads), log)
	server.RegisterOnShutdown(p.changes.Close) // streams would last longer than the grace
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
	case <-p.failed:
		// What is under way can be neither finished nor acknowledged; waiting for it would only delay the restart.
		return p.kill("the disk failed, and the store stopped: see the log. Nothing that was acknowledged is lost")
	}

	drained := make(chan error, 1)
	go func() { drained <- drain(server, stop, worked, served, p, s.grace) }()
	select {
	case err := <-drained:
		return errors.Join(cause, err)
	case <-signals:
		return p.kill("ended at once; what ran is taken up at the next start")
	case <-p.failed:
		return p.kill("the disk failed while stopping: see the log. Nothing that was acknowledged is lost")
	}
}

// kill ends what runs, of a process that ends without having drained. Its error says why.
func (p *process) kill(why string) error {
	p.targets.Kill()
	return errors.New(why)
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
	return errors.Join(err, <-worked, p.close())
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
		told := map[string]string{"address": url, "version": thisBuild().Version}
		if s.console {
			told["console"] = url + api.ConsolePath
		}
		if s.engines.shared() {
			told["store"], told["queue"], told["blob"] = s.engines.store, s.engines.queues, s.engines.blob
		} else {
			told["data"] = data
		}
		_ = c.print(told)
		return
	}
	fmt.Fprintf(c.stdout, "Belfry %s is ready after %s.\n  address  %s\n", thisBuild().Version, took.Round(time.Millisecond), url)
	if s.console {
		fmt.Fprintf(c.stdout, "  console  %s%s\n", url, api.ConsolePath)
	}
	if s.engines.shared() {
		fmt.Fprint(c.stdout, s.engines.shown())
	} else {
		fmt.Fprintf(c.stdout, "  data     %s\n", data)
	}
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
