package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/proxy"
)

func TestFault1_a_bad_network(t *testing.T) {
	t.Parallel()
	var heard atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard.Add(1)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	p := proxy.Start(t, proxy.Config{To: func() string { return strings.TrimPrefix(server.URL, "http://") }, Seed: 1, Rate: 0.4, Longest: 10 * time.Millisecond})
	asked, answered := 0, 0
	ask := func() {
		asked++
		answer, err := http.Post(p.URL(), "text/plain", strings.NewReader("hello"))
		if err != nil {
			return
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err == nil {
			if answered++; string(text) != "hello" {
				t.Errorf("an answer was changed: %q", text)
			}
		}
	}
	for range 300 {
		ask()
	}
	if n := int(heard.Load()); answered == asked || n == asked || n <= answered {
		t.Errorf("of %d requests %d came to the server and %d were answered; want some lost, and answers of others", asked, n, answered)
	}
	counts := p.Counts()
	for _, f := range []proxy.Fault{proxy.Lose, proxy.CutIn, proxy.Swallow, proxy.CutOut, proxy.Silence, proxy.Delay} {
		if counts[f] == 0 {
			t.Errorf("never %s: %v", f, counts)
		}
	}
	p.Calm()
	before := answered
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for range 50 {
		ask()
	}
	if answered-before != 50 {
		t.Errorf("%d of 50 answered when the network was calm", answered-before)
	}
}
