package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Bounds of trying targets.
const (
	connectTime = 3 * time.Second
	connectsMax = 200
	connectsNow = 10
)

// targetFindings tries to connect to what the jobs call, each address once. It sends nothing.
func targetFindings(ctx context.Context, jobs []wire.Job) []finding {
	places := map[string][]string{} // by what is tried: the jobs
	for _, j := range jobs {
		switch t := j.Target; {
		case t.HTTP != nil:
			if at, err := url.Parse(t.HTTP.URL); err == nil {
				places[hostPort(at)] = append(places[hostPort(at)], j.Name)
			}
		case t.Exec != nil && len(t.Exec.Argv) > 0:
			what := "command " + t.Exec.Argv[0]
			places[what] = append(places[what], j.Name)
		}
	}
	names := slices.Sorted(maps.Keys(places))
	left := max(0, len(names)-connectsMax)
	names = names[:len(names)-left]
	found := make([]finding, len(names))
	room := make(chan struct{}, connectsNow)
	var trying sync.WaitGroup
	for i, name := range names {
		room <- struct{}{}
		trying.Go(func() {
			defer func() { <-room }()
			found[i] = tryTarget(ctx, name, places[name])
		})
	}
	trying.Wait()
	if left > 0 {
		found = append(found, finding{Check: "targets", Status: findAttention, Found: fmt.Sprintf("%d more addresses were not tried", left)})
	}
	return found
}

func hostPort(at *url.URL) string {
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	return net.JoinHostPort(at.Hostname(), port)
}

func tryTarget(ctx context.Context, name string, jobs []string) finding {
	of := fmt.Sprintf("%d jobs", len(jobs))
	if len(jobs) == 1 {
		of = jobs[0]
	}
	f := fine("target", "%s answers (%s)", name, of)
	if command, ok := strings.CutPrefix(name, "command "); ok {
		f.Found = fmt.Sprintf("%s is there (%s)", name, of)
		if _, err := exec.LookPath(command); err == nil {
			return f
		}
		f.Status, f.Found = findAttention, fmt.Sprintf("%s is not found on this host (%s)", name, of)
		f.Why, f.Help = "If workers on this host run it, its runs fail.", "Install it, or give its whole path."
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", name)
	if err == nil {
		_ = connection.Close() // nothing was sent
		return f
	}
	f.Status, f.Found = findProblem, fmt.Sprintf("%s (%s): %v", name, of, err)
	f.Why, f.Help = "Its runs fail, and are tried again until their attempts are spent.", "Start what listens there, or mend the route or firewall between. This host was asked, which need not be where workers run."
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		f.Help = "Correct the name in the job, or the host's resolver."
	}
	return f
}
