package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Bounds of a conversion. It needs no token, as it has nothing but what it is sent; so few are made at once.
const (
	maxConverted = 1 << 20          // bytes of a request
	maxComing    = 64 << 20         // bytes of requests that are still being sent, together: slow ones keep others out where they are that much
	maxReading   = 20 * time.Second // from its headers to the end of its body, so slow ones do so for no longer
	maxHeld      = 64               // requests at once that are here as a whole: one that is still being sent is none of them
	maxAtOnce    = 4                // of those that are worked on, at the most: see atOnce
	maxFires     = 20               // of a job alone
	maxOfMany    = 3                // of each of several
	maxListed    = 1000             // jobs of a text
	maxLines     = 5000             // fields of which the line is told
)

// converter makes of what people write what the API takes, and back, with the code of the command line. What it answers follows from what it is
// sent alone.
type converter struct {
	now    func() time.Time
	coming atomic.Int64 // bytes
	held   chan struct{}
	work   chan struct{}
}

func newConverter(now func() time.Time) *converter {
	return &converter{now: now, held: make(chan struct{}, maxHeld), work: make(chan struct{}, atOnce(runtime.GOMAXPROCS(0)))}
}

// atOnce is how many requests are worked on where so many threads run Go: half of them, as the server has other things to do.
func atOnce(threads int) int { return min(maxAtOnce, max(1, threads/2)) }

// readRequest asks what a text says.
type readRequest struct {
	Text string       `json:"text"`
	As   jobfile.Form `json:"as"` // "": what it looks like
	// Of a text of another scheduler: see jobfile.Source and jobfile.Changes.
	Zone   string `json:"zone"`
	Local  string `json:"local"`
	User   string `json:"user"`
	Home   string `json:"home"`
	System bool   `json:"system"`
	Way    string `json:"way"`
	URL    string `json:"url"`
	Prefix string `json:"prefix"`
	Paused bool   `json:"paused"`
	// Without are jobs that others of the text call and that the server refuses, with its reasons.
	Without map[string]string `json:"without"`
	Fires   int               `json:"fires"` // of each job
}

// readAnswer is what a text says, or what is wrong with it.
type readAnswer struct {
	As       jobfile.Form `json:"as,omitempty"`
	Jobs     []readJob    `json:"jobs"`
	Settings []readNote   `json:"settings,omitempty"`
	Notes    []readNote   `json:"notes,omitempty"`
	Wrong    *wrongText   `json:"wrong,omitempty"`
}

type readJob struct {
	Line  int            `json:"line"`
	Name  string         `json:"name"`
	Job   string         `json:"job"` // JSON as the API takes it, with its name where it has one: a text, of which the page reads no number
	YAML  string         `json:"yaml"`
	Calls []string       `json:"calls,omitempty"`
	Lines map[string]int `json:"lines,omitempty"` // of the fields, as problems name them, in the text
	Fires *fires         `json:"fires,omitempty"`
}

type readNote struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	Why  string `json:"why,omitempty"`
	Lost bool   `json:"lost,omitempty"`
}

type wrongText struct {
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	What   string `json:"what"`
}

// fires are the next ones of a job, or why there are none.
type fires struct {
	wire.JobFires
	Wrong []wire.FieldError `json:"wrong,omitempty"` // what is wrong with the schedule
}

// writeRequest asks for a job as YAML, over a text that stands there.
type writeRequest struct {
	Job   json.RawMessage `json:"job"`
	Over  string          `json:"over"`
	Fires int             `json:"fires"`
}

// serve answers a request; what is the part of the path that says which.
func (c *converter) serve(w http.ResponseWriter, r *http.Request, what string) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		problem(w, http.StatusUnsupportedMediaType, "not_json", "The body must be JSON, and the header Content-Type: application/json say so.")
		return
	}
	text, err := c.body(w, r)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		problem(w, http.StatusRequestEntityTooLarge, "too_large", "The text is larger than 1 MB. The command line takes larger ones.")
		return
	case errors.Is(err, errCrowded):
		crowded(w)
		return
	case errors.Is(err, os.ErrDeadlineExceeded):
		problem(w, http.StatusRequestTimeout, "malformed", fmt.Sprintf("The body was not here after %s.", maxReading))
		return
	case err != nil:
		problem(w, http.StatusBadRequest, "malformed", "The body broke off.")
		return
	}
	select {
	case c.held <- struct{}{}:
		defer func() { <-c.held }()
	default:
		crowded(w)
		return
	}
	select {
	case c.work <- struct{}{}:
		defer func() { <-c.work }()
	case <-r.Context().Done():
		return
	}
	var answer any
	if what == "read" {
		answer, err = decoded(text, c.read)
	} else {
		answer, err = decoded(text, c.write)
	}
	if err != nil {
		problem(w, http.StatusBadRequest, "malformed", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(answer) // the page may have gone
}

func crowded(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	problem(w, http.StatusTooManyRequests, "rate_limited", "Too many texts are being read. Try again in a second.")
}

var errCrowded = errors.New("too much is being sent")

// body reads a request, in a time that is bounded where the server can do that. Elsewhere requests come as a whole.
func (c *converter) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	ended := make(chan struct{})
	late := time.AfterFunc(maxReading, func() {
		defer close(ended)
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // long past: whoever reads stops
	})
	coming := &coming{Reader: http.MaxBytesReader(w, r.Body, maxConverted), all: &c.coming}
	defer coming.leave()
	text, err := io.ReadAll(coming)
	if !late.Stop() {
		<-ended // w is this request's alone while it is served
		return nil, os.ErrDeadlineExceeded
	}
	return text, err
}

// coming is a body on its way. It counts among all that are, and ends where those are too much.
type coming struct {
	io.Reader
	all *atomic.Int64
	n   int64
}

func (c *coming) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	if c.all.Add(int64(n)) > maxComing {
		return 0, errCrowded
	}
	return n, err
}

func (c *coming) leave() { c.all.Add(-c.n) }

func decoded[Q, A any](text []byte, answer func(Q) (A, error)) (any, error) {
	var asked Q
	if err := json.Unmarshal(text, &asked); err != nil {
		return nil, fmt.Errorf("want JSON as these pages send it: %w", err)
	}
	return answer(asked)
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail})
}

func (c *converter) read(q readRequest) (*readAnswer, error) {
	text, a := []byte(q.Text), &readAnswer{As: q.As, Jobs: []readJob{}}
	if a.As == "" {
		form, err := jobfile.FormOf(text)
		if err != nil {
			a.Wrong = wrongOf(err)
			return a, nil
		}
		a.As = form
	}
	if a.As == jobfile.Belfry {
		documents, _, err := jobfile.Read(jobfile.Job, "-", text)
		if err != nil {
			a.Wrong = wrongOf(err)
			return a, nil
		}
		for _, d := range documents {
			a.add(c.jobOf(d, countFor(q.Fires, len(documents)), len(documents) == 1))
		}
		return a.bounded(), nil
	}
	if zone := cmp.Or(q.Zone, q.Local); zone != "" {
		if _, err := schedule.LoadZone(zone); err != nil {
			a.Wrong = &wrongText{What: "time zone: " + strings.TrimPrefix(err.Error(), "timezone: ")}
			return a, nil
		}
	}
	from := jobfile.Source{Zone: q.Zone, Local: q.Local, User: q.User, Home: q.Home, System: q.System, Way: q.Way, URL: q.URL, Now: c.now()}
	taken, err := jobfile.TakeOver(a.As, text, from)
	if err != nil {
		a.Wrong = wrongOf(err)
		return a, nil
	}
	changes := jobfile.Changes{Prefix: q.Prefix}
	if q.Paused {
		changes.Paused = &q.Paused
	}
	taken.Adjust(changes)
	taken.Without(q.Without)
	for _, j := range taken.Jobs {
		value, err := jobfile.Of(j.Def)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.Name, err)
		}
		read := c.jobOf(jobfile.Document{Name: j.Name, File: "-", Job: value}, countFor(q.Fires, len(taken.Jobs)), false)
		read.Line = j.Line
		a.add(read)
	}
	for _, s := range taken.Settings {
		a.Settings = append(a.Settings, readNote{Line: s.Line, Text: s.Name + "=" + s.Value})
	}
	for _, n := range taken.Notes {
		a.Notes = append(a.Notes, noteOf(n))
	}
	return a.bounded(), nil
}

// countFor is how many fires of each job are told, of so many jobs.
func countFor(asked, jobs int) int {
	if jobs > 1 {
		return min(asked, maxOfMany)
	}
	return asked
}

func (a *readAnswer) add(j readJob) { a.Jobs = append(a.Jobs, j) }

// bounded refuses more jobs than a page shows.
func (a *readAnswer) bounded() *readAnswer {
	if len(a.Jobs) > maxListed {
		a.Wrong = &wrongText{What: fmt.Sprintf("it has %d jobs, and a page takes %d at once; the command line takes them all", len(a.Jobs), maxListed)}
		a.Jobs = []readJob{}
	}
	return a
}

func noteOf(n takeover.Note) readNote {
	return readNote{Line: n.Line, Text: n.Text, Why: n.Why, Lost: n.Lost}
}

// wrongOf says where a text is wrong, as far as that is known.
func wrongOf(err error) *wrongText {
	var file *jobfile.Error
	var text *manifest.Error
	switch {
	case errors.As(err, &file):
		return &wrongText{file.Line, file.Column, file.What}
	case errors.As(err, &text):
		return &wrongText{text.Line, text.Column, text.What}
	}
	return &wrongText{What: err.Error()}
}

// jobOf is a job of a text. lined: with the lines of its fields.
func (c *converter) jobOf(d jobfile.Document, count int, lined bool) readJob {
	named := d.Job
	if d.Name != "" {
		named = d.Named()
	}
	j := readJob{Line: d.Job.Line, Name: d.Name, Job: string(named.JSON()), YAML: string(manifest.YAML(named)), Calls: d.Calls(), Fires: c.firesOf(d.Job, count)}
	if lined {
		j.Lines = linesOf(d.Job)
	}
	return j
}

// linesOf gives the line of each field by its path.
func linesOf(v *manifest.Value) map[string]int {
	lines := map[string]int{"": v.Line}
	var walk func(at string, v *manifest.Value)
	walk = func(at string, v *manifest.Value) {
		for _, m := range v.Members {
			next := strings.TrimPrefix(at+"."+m.Name, ".")
			if len(lines) < maxLines {
				lines[next] = m.Line
				walk(next, m.Value)
			}
		}
		for i, item := range v.Items {
			next := fmt.Sprintf("%s[%d]", at, i)
			if len(lines) < maxLines {
				lines[next] = item.Line
				walk(next, item)
			}
		}
	}
	walk("", v)
	return lines
}

// firesOf gives the next fires of a job as its text has it; nil where they are not asked for, or its schedule cannot be read.
func (c *converter) firesOf(j *manifest.Value, count int) *fires {
	if count <= 0 {
		return nil
	}
	given := j.Member("schedule")
	shown := &fires{JobFires: wire.JobFires{Fires: []wire.Fire{}}}
	if given == nil || given.Kind == manifest.Null {
		shown.Idle = "on_demand"
		return shown
	}
	var spec schedule.Spec
	if err := json.Unmarshal(given.JSON(), &spec); err != nil {
		return nil
	}
	compiled, err := spec.Check()
	if err != nil {
		shown.Idle = "faulty"
		for _, e := range invalid.All(err) {
			shown.Wrong = append(shown.Wrong, wire.FieldError{Field: strings.TrimSuffix("schedule."+e.Field, "."), Message: (&invalid.Error{Got: e.Got, Want: e.Want}).Error()})
		}
		return shown
	}
	shown.Description, shown.Fires = compiled.Describe(), wire.FiresOf(compiled, c.now(), min(count, maxFires))
	if spec.Cron != "" {
		shown.Timezone = spec.Timezone
		if shown.Timezone == "" {
			shown.Timezone = "UTC"
		}
	}
	if len(shown.Fires) == 0 {
		shown.Idle = "over"
	} else if paused := j.Member("paused"); paused != nil && paused.Scalar == "true" {
		shown.Idle = "paused"
	}
	return shown
}

func (c *converter) write(q writeRequest) (*readJob, error) {
	v, err := manifest.ReadJSON(q.Job)
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if v.Kind != manifest.Object {
		return nil, fmt.Errorf("job: got %s, want an object", v.Kind)
	}
	text := manifest.Rewrite([]byte(q.Over), v)
	again, err := manifest.Read("x.yaml", text)
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if len(again) != 1 {
		return nil, fmt.Errorf("job: its text has %d documents, want one", len(again))
	}
	return &readJob{Line: again[0].Line, Job: string(v.JSON()), YAML: string(text), Lines: linesOf(again[0]), Fires: c.firesOf(v, q.Fires)}, nil
}
