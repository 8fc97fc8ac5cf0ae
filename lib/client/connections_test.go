package client_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// Many callers of one client keep their connections: with the usual two, nearly every call would dial.
func TestP11_ManyCallersKeepTheirConnections(t *testing.T) {
	const callers, rounds = 20, 5
	var dialled atomic.Int64
	var together sync.WaitGroup // so that each caller of a round has a connection of its own
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		together.Done()
		together.Wait()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"name":"a"}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dialled.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := client.New(client.Config{Address: server.URL, NewKey: func() string { return "k" }})
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		together.Add(callers)
		var round sync.WaitGroup
		for range callers {
			round.Go(func() {
				if _, err := c.Job(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			})
		}
		round.Wait()
	}
	// A connection comes back a moment after its answer was read, so a few are dialled anew.
	if n := dialled.Load(); n > 2*callers {
		t.Errorf("%d calls by %d callers dialled %d times, want about %d", callers*rounds, callers, n, callers)
	}
}
