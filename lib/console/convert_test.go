package console_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/console"
)

func clock() time.Time { return time.Date(2027, 3, 26, 12, 0, 0, 0, time.UTC) }

// converted is what a conversion answers, with its status.
func converted(t *testing.T, what, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	h := mounted(t, console.Config{Now: clock})
	r := httptest.NewRequest(http.MethodPost, "http://host/console/convert/"+what, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &answer) // a refusal of the guard is text
	return w.Code, answer
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func ask1(t *testing.T, what string, body any) map[string]any {
	t.Helper()
	status, answer := converted(t, what, text(t, body))
	if status != http.StatusOK {
		t.Fatalf("%s %v: %d %v", what, body, status, answer)
	}
	return answer
}

type fields = map[string]any

func TestAJobIsReadAsTheCommandLineReadsIt(t *testing.T) {
	yaml := "name: night\nschedule: {cron: 30 2 * * *, timezone: Europe/Berlin}\ntarget:\n  exec:\n    argv: [a]\npayload: {n: 12345678901234567890}\non: {failed: {job: tell}}\n"
	got := ask1(t, "read", fields{"text": yaml, "fires": 3})
	jobs := got["jobs"].([]any)
	if got["as"] != "belfry" || len(jobs) != 1 {
		t.Fatal(got)
	}
	j := jobs[0].(fields)
	if want := `{"name":"night","schedule":{"cron":"30 2 * * *","timezone":"Europe/Berlin"},"target":{"exec":{"argv":["a"]}},"payload":{"n":12345678901234567890},"on":{"failed":{"job":"tell"}}}`; j["job"] != want {
		t.Errorf("%s, want %s", j["job"], want)
	}
	lines := j["lines"].(fields)
	if lines["target.exec.argv[0]"] != 5.0 || lines["schedule.cron"] != 2.0 || !reflect.DeepEqual(j["calls"], []any{"tell"}) {
		t.Errorf("%v calls %v", lines, j["calls"])
	}
	fires := j["fires"].(fields)
	second := fires["fires"].([]any)[1].(fields)
	if fires["description"] != "At 02:30, Europe/Berlin" || second["mark"] != "shifted" || second["at"] != "2027-03-28T01:00:00Z" {
		t.Errorf("%v", fires)
	}
}

func TestWhatCannotBeReadHasItsPlace(t *testing.T) {
	for body, want := range map[string]fields{
		"schedule:\n  cron: */5 * * * *\n": {"line": 2.0, "column": 9.0, "what": `want YAML: what begins with * stands in quotes: "*/5 * * * *"`},
		"a: 1\na: 2\n":                     {"line": 2.0, "column": 1.0, "what": "a: given twice; first in line 1"},
	} {
		if got := ask1(t, "read", fields{"as": "belfry", "text": body})["wrong"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", body, got, want)
		}
	}
	for _, body := range []fields{{"text": ""}, {"text": "a: 1"}, {"text": "x", "as": "crontab"}, {"text": "0 9 * * * a", "as": "kubernetes"}, {"text": "x", "as": "systemd"}, {"text": "0 9 * * * a", "zone": "Mars/Base"}} {
		got := ask1(t, "read", body)
		if got["wrong"] == nil || len(got["jobs"].([]any)) != 0 {
			t.Errorf("%v: %v", body, got)
		}
	}
	for schedule, field := range map[string]string{`{cron: "0 25 * * *"}`: "schedule.cron", `{every: 1ms}`: "schedule.every", `{}`: "schedule.cron"} {
		got := ask1(t, "read", fields{"as": "belfry", "text": "schedule: " + schedule, "fires": 1})
		fires := got["jobs"].([]any)[0].(fields)["fires"].(fields)
		if wrong := fires["wrong"].([]any)[0].(fields)["field"]; fires["idle"] != "faulty" || wrong != field {
			t.Errorf("%s: %v", schedule, fires)
		}
	}
}

func TestOtherSchedulersAreTakenOverAsByImport(t *testing.T) {
	crontab := "SHELL=/bin/bash\nMAILTO=ops@example.org\n0 9 * * * /bin/report\n@reboot x\n"
	got := ask1(t, "read", fields{"text": crontab, "zone": "Asia/Tokyo", "prefix": "web1.", "paused": true, "user": "ada", "home": "/home/ada", "fires": 3})
	if got["as"] != "crontab" || len(got["jobs"].([]any)) != 2 || len(got["settings"].([]any)) != 2 {
		t.Fatalf("%v", got)
	}
	mail, report := got["jobs"].([]any)[0].(fields), got["jobs"].([]any)[1].(fields)
	if report["line"] != 3.0 || !strings.Contains(report["yaml"].(string), "timezone: Asia/Tokyo") || !strings.Contains(report["yaml"].(string), "dir: /home/ada") || report["fires"].(fields)["idle"] != "paused" {
		t.Errorf("%v", report)
	}
	if notes := text(t, got["notes"]); !strings.Contains(notes, `"lost":true`) || !strings.Contains(notes, "@reboot names no time") {
		t.Error(notes)
	}
	got = ask1(t, "read", fields{"text": crontab, "prefix": "web1.", "user": "ada", "without": fields{mail["name"].(string): "no mail server"}})
	if notes := text(t, got["notes"]); len(got["jobs"].([]any)) != 1 || !strings.Contains(notes, "no mail server") {
		t.Errorf("%v", got)
	}
	// The zone of whoever reads is that of a crontab's host, and of nothing else.
	odd := "CRON_TZ=CET-1CEST\n0 9 * * * /bin/report\n"
	cron := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: 0 3 * * *, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}\n"
	for _, c := range [][3]string{{"0 9 * * * /bin/report\n", "local", "timezone: Asia/Tokyo"}, {odd, "zone", "timezone: Asia/Tokyo"}, {odd, "local", ""}, {cron, "local", "timezone: UTC"}, {cron, "zone", "timezone: Asia/Tokyo"}} {
		jobs := ask1(t, "read", fields{"text": c[0], c[1]: "Asia/Tokyo"})["jobs"].([]any)
		if c[2] == "" && len(jobs) != 0 || c[2] != "" && (len(jobs) != 1 || !strings.Contains(jobs[0].(fields)["yaml"].(string), c[2])) {
			t.Errorf("%q with %s: %v, want %q", c[0], c[1], jobs, c[2])
		}
	}
	many := strings.Repeat("0 9 * * * /bin/report $RANDOM\n", 1001)
	if got = ask1(t, "read", fields{"text": many}); got["wrong"] == nil {
		t.Errorf("%d jobs are listed", len(got["jobs"].([]any)))
	}
}

func TestAJobIsWrittenOverItsText(t *testing.T) {
	status, got := converted(t, "write", `{"job":{"name":"a","payload":{"n":12345678901234567890},"target":{"exec":{"argv":["x"]}}},"over":"# mine\nname: b # here\n","fires":2}`)
	if want := "# mine\nname: a # here\npayload:\n  \"n\": 12345678901234567890\ntarget:\n  exec:\n    argv:\n    - x\n"; status != 200 || got["yaml"] != want || got["fires"].(fields)["idle"] != "on_demand" {
		t.Errorf("%d %v", status, got)
	}
}

func TestAConversionIsGuardedAsAWriteIs(t *testing.T) {
	body := `{"text":"0 9 * * * a"}`
	for name, c := range map[string]struct {
		what, body string
		headers    []string
		status     int
	}{
		"its own page":              {"read", body, []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://host"}, 200},
		"a program":                 {"read", body, nil, 200},
		"a page of another site":    {"read", body, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a page of another port":    {"read", body, []string{"Sec-Fetch-Site", "same-site"}, 403},
		"an old browser, elsewhere": {"read", body, []string{"Origin", "http://evil.example"}, 403},
		"a form":                    {"read", body, []string{"Content-Type", "text/plain"}, 415},
		"a form of fields":          {"read", body, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"no JSON":                   {"read", "x", nil, 400},
		"JSON of another form":      {"read", `{"text": 1}`, nil, 400},
		"no job":                    {"write", `{}`, nil, 400},
		"a job that is a list":      {"write", `{"job":[]}`, nil, 400},
		"a name twice":              {"write", `{"job":{"a":1,"a":2}}`, nil, 400},
		"too deep":                  {"write", `{"job":` + strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600) + "}", nil, 400},
		"too large":                 {"read", `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413},
		"something else":            {"run", body, nil, 405},
	} {
		if status, answer := converted(t, c.what, c.body, c.headers...); status != c.status || status == 400 && answer["detail"] == "" {
			t.Errorf("%s: %d %v, want %d", name, status, answer, c.status)
		}
	}
	h := mounted(t, console.Config{})
	if got := ask(h, "GET", "/console/convert/read", nil); got.status != 200 || !strings.Contains(got.text, "data-prefix") {
		t.Errorf("asked for by GET it is no page: %d", got.status)
	}
	if got := ask(h, "PUT", "/console/convert/read", nil); got.status != 405 {
		t.Errorf("PUT: %d", got.status)
	}
}

// slow is a body that begins to come, and has not come yet.
type slow struct {
	sent        int // bytes
	began, came chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	if s.sent == 0 {
		s.began <- struct{}{}
		<-s.came
		return 0, io.EOF
	}
	n := min(len(p), s.sent)
	s.sent -= n
	return copy(p, bytes.Repeat([]byte(" "), n)), nil
}

func posted(h http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/console/convert/read", body)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Connections that send a text slowly, or none of it, take the conversion from nobody. What they send together is bounded.
func TestTextsThatAreSlowToComeKeepNobodyOut(t *testing.T) {
	const body = `{"text":"0 9 * * * a"}`
	for _, c := range []struct{ bytes, many, then int }{{0, 300, 200}, {1 << 20, 63, 200}, {1 << 20, 64, 429}} {
		h, came, ended := mounted(t, console.Config{}), make(chan struct{}), make(chan int)
		for range c.many {
			one := &slow{c.bytes, make(chan struct{}), came}
			go func() { ended <- posted(h, one).Code }()
			<-one.began
		}
		if w := posted(h, strings.NewReader(body)); w.Code != c.then || (c.then == 429) != (w.Header().Get("Retry-After") == "1") {
			t.Errorf("beside %d of %d bytes: %d %s, want %d", c.many, c.bytes, w.Code, w.Body, c.then)
		}
		close(came)
		for range c.many {
			if code := <-ended; code != 400 && code != 429 { // all break off at once, and so many are not held
				t.Errorf("a text that broke off: %d", code)
			}
		}
		if w := posted(h, strings.NewReader(body)); w.Code != 200 {
			t.Errorf("once they are gone: %d %s", w.Code, w.Body)
		}
	}
}

// lone is a listener that gives one connection.
type lone chan net.Conn

func (l lone) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l lone) Close() error   { return nil }
func (l lone) Addr() net.Addr { return &net.TCPAddr{} }

func TestATextHasToComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http.Server{Handler: mounted(t, console.Config{})}
		listener := make(lone, 1)
		ours, theirs := net.Pipe()
		listener <- theirs
		close(listener)
		go func() { _ = server.Serve(listener) }()
		began := time.Now()
		if _, err := io.WriteString(ours, "POST /console/convert/read HTTP/1.1\r\nHost: host\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if took := time.Since(began); got.StatusCode != http.StatusRequestTimeout || took != 20*time.Second {
			t.Errorf("%d after %s, want 408 after 20 s", got.StatusCode, took)
		}
		_ = ours.Close()
		_ = server.Close()
	})
}
