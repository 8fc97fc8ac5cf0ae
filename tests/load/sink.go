package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// call is one arrival at the sink: what a target sees of an attempt.
type call struct {
	run, job string
	attempt  int
	fence    uint64
	nominal  time.Time
	arrived  time.Time
	edit     int    // of the definition that called: its URL tells
	ask      int    // of the request for the run: its payload tells; 0 for none
	key      string // Idempotency-Key
	answer   int    // HTTP status; 0 where the caller was gone before it
}

// behaviour is what a definition asks of the sink, in its URL.
type behaviour struct {
	edit  int
	slow  time.Duration // before the answer
	fails int           // attempts answered with 500
	later time.Duration // what such an answer asks to be left alone for
}

func (b behaviour) url(sink string) string {
	return fmt.Sprintf("%s/?edit=%d&slow=%s&fails=%d&later=%s", sink, b.edit, b.slow, b.fails, b.later)
}

// Sink is the target of all jobs. As docs/targets.md advises, it remembers the highest fence that it saw of a run and refuses
// what comes with a lower one.
type Sink struct {
	*httptest.Server
	now     func() time.Time
	mu      sync.Mutex
	calls   []call
	highest map[string]uint64
	problem []string // calls that Belfry would not make
}

// NewSink starts one, for as long as the test lasts. now is the servers' time.
func NewSink(t testing.TB, now func() time.Time) *Sink {
	s := &Sink{now: now, highest: map[string]uint64{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Answer is the body of a success, which becomes the run's result.
type Answer struct {
	Fence uint64 `json:"fence"`
	More  string `json:"more,omitempty"`
}

// answered is the answer to a call under a fence: every other is more than a run's record holds, and goes by a blob.
func answered(fence uint64) []byte {
	a := Answer{Fence: fence}
	if fence%2 == 1 {
		a.More = strings.Repeat(strconv.FormatUint(fence, 10)+" ", 2<<10)
	}
	text, _ := json.Marshal(a) // a number and a text always are JSON
	return text
}

func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := call{arrived: s.now(), run: r.Header.Get("Belfry-Run"), job: r.Header.Get("Belfry-Job"), key: r.Header.Get("Idempotency-Key")}
	wanted := behaviour{}
	var errs [7]error
	c.attempt, errs[0] = strconv.Atoi(r.Header.Get("Belfry-Attempt"))
	c.fence, errs[1] = strconv.ParseUint(r.Header.Get("Belfry-Fence"), 10, 64)
	c.nominal, errs[2] = time.Parse(time.RFC3339Nano, r.Header.Get("Belfry-Nominal-Time"))
	c.edit, errs[3] = strconv.Atoi(r.URL.Query().Get("edit"))
	wanted.slow, errs[4] = time.ParseDuration(r.URL.Query().Get("slow"))
	wanted.fails, errs[5] = strconv.Atoi(r.URL.Query().Get("fails"))
	wanted.later, errs[6] = time.ParseDuration(r.URL.Query().Get("later"))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller died while it was calling
	}
	var payload struct{ Ask int }
	if len(body) > 0 {
		err = json.Unmarshal(body, &payload)
	}
	c.ask = payload.Ask
	if err == nil && c.ask != 0 && !bytes.Equal(body, given(c.ask)) {
		err = fmt.Errorf("not what request %d carried", c.ask)
	}

	s.mu.Lock()
	for _, err := range append(errs[:], err) {
		if err != nil {
			s.problem = append(s.problem, fmt.Sprintf("a call that Belfry would not make: %v: %v %q", err, r.Header, body))
		}
	}
	stale := c.fence <= s.highest[c.run]
	s.highest[c.run] = max(s.highest[c.run], c.fence)
	at := len(s.calls)
	s.calls = append(s.calls, c)
	s.mu.Unlock()

	status := http.StatusOK
	switch {
	case stale:
		status = http.StatusConflict
	case c.attempt <= wanted.fails:
		status = http.StatusInternalServerError
	}
	if wanted.slow > 0 {
		wait := time.NewTimer(wanted.slow)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	s.calls[at].answer = status
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusInternalServerError && wanted.later > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wanted.later.Seconds())))
	}
	w.WriteHeader(status)
	_, _ = w.Write(answered(c.fence))
}

// seen gives a copy of all calls so far, in the order of their arrival.
func (s *Sink) seen() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.calls...)
}

func (s *Sink) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problem)
}

// ReportTo names the variable that makes this program a job's command, which calls the sink as an http target would.
const ReportTo = "CHAOS_REPORT_TO"

// Report is such a command.
func Report(url string) int {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for header, variable := range map[string]string{
		"Belfry-Run": "BELFRY_RUN", "Belfry-Job": "BELFRY_JOB", "Belfry-Attempt": "BELFRY_ATTEMPT", "Belfry-Fence": "BELFRY_FENCE",
		"Belfry-Nominal-Time": "BELFRY_NOMINAL_TIME", "Idempotency-Key": "BELFRY_IDEMPOTENCY_KEY",
	} {
		if value, set := os.LookupEnv(variable); set {
			request.Header.Set(header, value)
		}
	}
	given, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer given.Body.Close()
	if _, err := io.Copy(os.Stdout, given.Body); err != nil || given.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, given.Status, err)
		return 1
	}
	return 0
}
