package linear

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Recorder gathers what clients ask and are told. It is safe for concurrent use; one serves all clients of a history.
type Recorder struct {
	now func() time.Time

	mu       sync.Mutex
	moment   int64 // counts begins and ends: their order, whatever clocks do
	clients  int
	things   map[thing]*history
	wide     map[thing]history // what may have been done to any thing of a kind and tenant, under no name
	tags     map[string]int64  // generations by ETag: the same one may be of several jobs
	requests int
	lost     int
	refused  int
	stepped  bool
}

// thing is what a request is for.
type thing struct{ kind, tenant, name string }

// The kinds of things.
const (
	aJob = "job"
	aRun = "run"
	aKey = "key"
)

func (t thing) String() string { return t.kind + " " + t.tenant + "/" + t.name }

// history is the operations on one thing.
type history []operation

type operation struct {
	client     int
	call, back int64 // moments; 0 back: open
	way        *Way  // of the request, while that is open
	what       any   // a jobStep, runStep or keyStep
}

// NewRecorder makes one. now tells the time by which runs expire and keys are forgotten.
func NewRecorder(now func() time.Time) *Recorder {
	return &Recorder{now: now, things: map[thing]*history{}, wide: map[thing]history{}, tags: map[string]int64{}}
}

// ClocksStep says that hosts' clocks are stepped in this history: an edit that changes nothing may then make a generation, in the place of
// one that a clock ahead had written, and a run that was queued may be shown as scheduled.
func (r *Recorder) ClocksStep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stepped = true
}

// Transport is what a client of a tenant is to send its requests with; next is what carries them.
func (r *Recorder) Transport(tenant string, next http.RoundTripper) http.RoundTripper {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients++
	return &transport{recorder: r, tenant: tenant, client: r.clients - 1, next: next}
}

type transport struct {
	recorder *Recorder
	tenant   string
	client   int
	next     http.RoundTripper
}

// RoundTrip sends a request, and notes it with its answer where it is for a job, a run or a key.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	route := routeOf(request)
	if route == nil {
		return t.next.RoundTrip(request)
	}
	asked := asked{route: route, tenant: t.tenant, request: request, at: t.recorder.now().UnixMilli()}
	if request.Body != nil {
		var err error
		if asked.body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		if err := request.Body.Close(); err != nil {
			return nil, err
		}
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(asked.body))
	}
	way := &Way{recorder: t.recorder}
	request = request.WithContext(context.WithValue(request.Context(), wayKey{}, way))
	call := t.recorder.tick()
	answer, err := t.next.RoundTrip(request)
	var told told
	if err == nil {
		// What a client has is what it has read to the end.
		var cut error
		told.body, cut = io.ReadAll(answer.Body)
		answer.Body.Close()
		answer.Body = &reread{Reader: bytes.NewReader(told.body), err: cut}
		if cut == nil {
			told.status, told.header = answer.StatusCode, answer.Header
		}
	}
	t.recorder.note(t.client, call, way, asked, told)
	return answer, err
}

// Paused notes that a job is about to be paused, by nobody's request, for a reason: it may come at any time until the way is over, or not at all.
func (r *Recorder) Paused(tenant, name, reason string) *Way {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moment++
	r.clients++
	way, on := &Way{recorder: r}, thing{aJob, tenant, name}
	if r.things[on] == nil {
		r.things[on] = new(history)
	}
	*r.things[on] = append(*r.things[on], operation{client: r.clients - 1, call: r.moment, way: way, what: jobStep{verb: pauseJob, reason: reason}})
	return way
}

// reread gives a body that was read already, and the error at its end.
type reread struct {
	*bytes.Reader
	err error
}

func (r *reread) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.err != nil {
		err = r.err
	}
	return n, err
}

func (r *reread) Close() error { return nil }

func (r *Recorder) tick() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moment++
	return r.moment
}

// note takes a request and its answer apart into operations.
func (r *Recorder) note(client int, call int64, way *Way, asked asked, told told) {
	found := asked.operations(told)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moment++
	r.requests++
	if way.never && told.status == 0 {
		r.refused++
		return
	}
	switch {
	case asked.open(told):
		r.lost++
	case len(found) == 0:
		r.refused++
	}
	for _, f := range found {
		if f.everywhere {
			r.wide[f.on] = append(r.wide[f.on], operation{client: client, call: call, way: way, what: f.what})
			continue
		}
		h := r.things[f.on]
		if h == nil {
			h = new(history)
			r.things[f.on] = h
		}
		o := operation{client: client, call: call, back: r.moment, what: f.what}
		if f.open {
			o.back, o.way = 0, way
		}
		*h = append(*h, o)
		if f.tag != "" {
			r.tags[f.tag] = f.generation
		}
	}
}

// of gives the operations on a thing, with those on any of its kind that may have come behind the first of its own: a thing may be heard
// of when those were already lost.
func (r *Recorder) of(on thing) history {
	all := *r.things[on]
	first := all[0].call
	for _, o := range all {
		first = min(first, o.call)
	}
	for _, o := range r.wide[thing{kind: on.kind, tenant: on.tenant}] {
		if o.ends(r.moment+1) > first {
			all = append(all[:len(all):len(all)], o)
		}
	}
	return all
}

// sorted gives all things in the order of their names.
func (r *Recorder) sorted() []thing {
	all := make([]thing, 0, len(r.things))
	for on := range r.things {
		all = append(all, on)
	}
	slices.SortFunc(all, func(a, b thing) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.name, b.name))
	})
	return all
}
