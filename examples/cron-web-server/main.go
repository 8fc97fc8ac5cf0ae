// Cron-web-server is a web server with jobs inside: a sign-up makes a welcome mail that survives a crash of the server, and a cron
// job counts the users.
//
//	go run ./examples/cron-web-server -listen 127.0.0.1:8080
//	curl -X POST 'http://127.0.0.1:8080/signup?email=ann@example.org'
//	curl http://127.0.0.1:8080/jobs
//
// SIGTERM lets requests and jobs come to their ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cron-web-server:", err)
		os.Exit(1)
	}
}

// grace is how long requests and jobs may go on when the server is stopped.
const grace = 10 * time.Second

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("cron-web-server", flag.ContinueOnError)
	data := flags.String("data", "cron-web-server-data", "folder of the jobs")
	listen := flags.String("listen", "127.0.0.1:8080", "address and port")
	cron := flags.String("cron", "*/5 * * * *", "when users are counted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var how net.ListenConfig
	listener, err := how.Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	defer listener.Close() // again, when the server has done it
	b, err := belfry.Open(ctx, "pebble:"+*data)
	if err != nil {
		return err
	}
	app := &app{jobs: b, stdout: stdout, users: map[string]bool{}}
	belfry.Handle(b, "welcome", app.welcome, belfry.MaxAttempts(10))
	belfry.Handle(b, "count-users", app.countUsers, belfry.AtMostOnce())
	err = errors.Join(
		b.Start(ctx),
		b.Schedule(ctx, "count-users", *cron, belfry.CatchUpNone()),
	)
	if err != nil {
		return errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
	}

	server := &http.Server{Handler: app.routes(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	app.say("listening on http://%s", listener.Addr())
	select {
	case <-ctx.Done():
	case err = <-served:
		served <- http.ErrServerClosed
	}
	// First the requests, which may still enqueue; then the jobs.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = errors.Join(err, server.Shutdown(ending), b.Stop(ending))
	if last := <-served; !errors.Is(last, http.ErrServerClosed) {
		err = errors.Join(err, last)
	}
	return err
}

type app struct {
	jobs *belfry.Belfry

	mu     sync.Mutex
	stdout io.Writer
	users  map[string]bool
}

func (a *app) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.stdout, format+"\n", args...)
}

func (a *app) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signup", a.signUp)
	mux.HandleFunc("GET /jobs", a.listJobs)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := a.jobs.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// Welcome is the payload of a welcome mail.
type Welcome struct {
	Email string `json:"email"`
}

func (a *app) signUp(w http.ResponseWriter, r *http.Request) {
	email := r.FormValue("email")
	if email == "" {
		http.Error(w, "want an email", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.users[email] = true
	a.mu.Unlock()
	// The key makes one mail of a form that is sent twice.
	run, err := belfry.Enqueue(r.Context(), a.jobs, "welcome", Welcome{email}, belfry.Key("welcome "+email))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintln(w, run.ID)
}

func (a *app) listJobs(w http.ResponseWriter, r *http.Request) {
	shown := []belfry.Run{}
	for run, err := range a.jobs.Runs(r.Context(), "") {
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if shown = append(shown, run); len(shown) == 50 {
			break
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(shown) // the client may be gone
}

func (a *app) welcome(_ context.Context, job *belfry.Job[Welcome]) error {
	a.say("mail to %s: welcome", job.Payload.Email)
	return nil
}

func (a *app) countUsers(_ context.Context, job *belfry.Job[struct{}]) error {
	a.mu.Lock()
	n := len(a.users)
	a.mu.Unlock()
	a.say("%d users at %s", n, job.Nominal.Format(time.TimeOnly))
	job.Result = n
	return nil
}
