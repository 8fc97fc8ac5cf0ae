package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/tests/linear"
)

// tenantHeader tells whose a request is. Tokens are tested elsewhere; here they would only cost steps.
const tenantHeader = "Sim-Tenant"

var errNobody = errors.New("connection refused")

// Client is a client of whatever host is up, as a tenant: each request goes to one of them by seed, over a network with faults. What it
// gives is what lib/client gives: *client.Error for a refusal, *client.Unreachable where no answer came.
func (w *World) Client(a *Actor, tenant string) *client.Client {
	r := w.Rand("net " + a.Name + " " + tenant)
	c, err := client.New(client.Config{
		HTTP: &http.Client{Timeout: time.Minute,
			Transport: w.heard.Transport(tenant, &wires{actor: a, rand: r, pages: w.Rand("pages " + a.Name + " " + tenant)})},
		Authorize: func(r *http.Request, _ []byte) error { r.Header.Set(tenantHeader, tenant); return nil },
		NewKey:    func() string { return strconv.FormatUint(r.Uint64(), 36) },
	})
	if err != nil {
		panic(err)
	}
	return c
}

// wires are the network between one client and the hosts.
type wires struct {
	actor *Actor
	rand  *rand.Rand
	pages *rand.Rand
}

// shorter makes some pages of a listing short. A client may ask for any length, and where one page ends and the next begins something
// could be left out or told twice. lib/client asks for more than most worlds hold.
func (n *wires) shorter(r *http.Request) *http.Request {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || n.pages.IntN(4) > 0 {
		return r
	}
	query.Set("limit", strconv.Itoa(min(limit, 1+n.pages.IntN(10))))
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

// RoundTrip carries a request to a host and the answer back, as two steps with what goes wrong in between.
func (n *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	w, ctx := n.actor.World, r.Context()
	way := linear.WayOf(ctx)
	n.actor.Requests++
	r = n.shorter(r)
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	var to *host
	var failed error
	c := &pending{}
	err := w.sched.ask(ctx, c, n.op("request", r, func() string {
		if w.luck.strikes(RequestLost, w.Faults.RequestLost) {
			failed = errReset
			return "lost"
		}
		if to = w.anyone(n.rand); to == nil {
			failed = errNobody
			return "refused"
		}
		if w.luck.strikes(RequestDelayed, w.Faults.RequestDelayed) {
			w.sched.await(c, n.op("late request", r, nil), w.luck.upTo(RequestDelayed, time.Minute))
			return "delayed"
		}
		return to.id
	}))
	if err != nil {
		way.Never() // its client gave up before it was sent
		return nil, err
	}
	if failed != nil {
		way.Never()
		if n.rand.IntN(2) == 0 { // nobody says so
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, failed
	}
	answer, err := to.answer(ctx, r, body)
	if err != nil {
		return nil, err
	}
	lost := false
	if err := w.sched.ask(ctx, &pending{}, n.op("answer", r, func() string {
		if lost = w.luck.strikes(AnswerLost, w.Faults.AnswerLost); lost {
			return "lost"
		}
		w.bounded(r, answer)
		return strconv.Itoa(answer.StatusCode)
	})); err != nil {
		return nil, err
	}
	if lost && n.rand.IntN(2) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if lost {
		return nil, errReset
	}
	return answer, nil
}

// bounded holds a page of a listing against the length that was asked for.
func (w *World) bounded(r *http.Request, answer *http.Response) {
	most, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || answer.StatusCode != http.StatusOK {
		return
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err) // it was written in memory
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		w.Violate("P11", "%s was answered with what is no page: %v", r.URL.RequestURI(), err)
	} else if len(page.Items) > most {
		w.Violate("P11", "%s was answered with %d items", r.URL.RequestURI(), len(page.Items))
	}
}

func (n *wires) op(what string, r *http.Request, do func() string) *op {
	return &op{who: n.actor.Name, what: what, key: r.Method, sort: r.URL.RequestURI(), medium: byNet, do: do}
}

// anyone is a host that answers requests, nil where there is none.
func (w *World) anyone(r *rand.Rand) *host {
	var up []*host
	for _, m := range w.machines {
		if m.host != nil && m.host.serving != nil {
			up = append(up, m.host)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[r.IntN(len(up))]
}

// answer has a host handle a request. Where the client hangs up it goes on, as a server does that has not noticed, until its time is
// over; where the host dies, the connection breaks.
func (h *host) answer(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	handler, way := h.serving, linear.WayOf(ctx)
	if handler == nil {
		way.Never()
		return nil, errNobody
	}
	inner, q := begin(h.ctx, way)
	inner, stop := context.WithCancel(inner)
	request := r.Clone(inner)
	request.Host, request.Body, request.RequestURI, request.RemoteAddr = "127.0.0.1:7340", io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI(), "127.0.0.1:1"
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	h.requests.Go(func() {
		defer close(done)
		defer q.ends()
		defer stop()
		handler.ServeHTTP(recorder, request)
	})
	select {
	case <-done:
	case <-h.dead:
		return nil, errReset
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if h.crashed {
		return nil, errReset
	}
	answer := recorder.Result()
	answer.Request = r
	return answer, nil
}
