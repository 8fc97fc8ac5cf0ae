package target

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/record"
)

func fieldsOf(err error) string {
	var fields []string
	for _, e := range invalid.All(err) {
		fields = append(fields, e.Field)
	}
	return strings.Join(fields, " ")
}

func TestGoodSpecs(t *testing.T) {
	for name, spec := range map[string]Spec{
		"http":        {HTTP: &HTTP{URL: "https://example.org/hook?x=1"}},
		"capitals":    {HTTP: &HTTP{URL: "HTTPS://Example.org/a%20b"}},
		"port":        {HTTP: &HTTP{URL: "http://127.0.0.1:7340", Method: "DELETE"}},
		"ipv6":        {HTTP: &HTTP{URL: "http://[::1]:80/"}},
		"headers":     {HTTP: &HTTP{URL: "http://a", Headers: Texts(map[string]string{"Authorization": "Bearer x", "X-Leer": "", "x-é": "no"})}},
		"classified":  {HTTP: &HTTP{URL: "http://a", PermanentStatus: []int{503}, RetryStatus: []int{404, 302}}},
		"exec":        {Exec: &Exec{Argv: []string{"/bin/sh", "-c", "echo $X"}, Env: Texts(map[string]string{"X": "1", "_y2": ""}), Dir: "/tmp", PermanentExitCodes: []int{1, 255}}},
		"bare":        {Exec: &Exec{Argv: []string{"backup"}}},
		"in its dir":  {Exec: &Exec{Argv: []string{"./backup"}, Dir: "/opt"}},
		"empty words": {Exec: &Exec{Argv: []string{"printf", ""}}},
		"handler":     {Handler: &Handler{Name: "billing.daily-report_2"}},
	} {
		if name == "headers" {
			delete(spec.HTTP.Headers, "x-é")
		}
		if err := spec.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadSpecsNameTheField(t *testing.T) {
	http := func(change func(*HTTP)) Spec {
		h := HTTP{URL: "https://example.org"}
		change(&h)
		return Spec{HTTP: &h}
	}
	at := func(url string) Spec { return http(func(h *HTTP) { h.URL = url }) }
	header := func(name, value string) Spec {
		return http(func(h *HTTP) { h.Headers = Texts(map[string]string{name: value}) })
	}
	exec := func(change func(*Exec)) Spec {
		e := Exec{Argv: []string{"/bin/true"}}
		change(&e)
		return Spec{Exec: &e}
	}
	env := func(name, value string) Spec {
		return exec(func(e *Exec) { e.Env = Texts(map[string]string{name: value}) })
	}
	for name, c := range map[string]struct {
		spec  Spec
		field string
	}{
		"nothing":             {Spec{}, ""},
		"two at once":         {Spec{HTTP: &HTTP{URL: "http://a"}, Handler: &Handler{Name: "a"}}, ""},
		"no url":              {at(""), "http.url"},
		"relative url":        {at("/hook"), "http.url"},
		"other scheme":        {at("ftp://example.org"), "http.url"},
		"file":                {at("file:///etc/passwd"), "http.url"},
		"opaque":              {at("http:example.org"), "http.url"},
		"no host":             {at("http://:80/"), "http.url"},
		"userinfo":            {at("https://user:hush@example.org"), "http.url"},
		"fragment":            {at("https://example.org/#x"), "http.url"},
		"empty fragment":      {at("https://example.org/#"), "http.url"},
		"blank":               {at("http://a/b c"), "http.url"},
		"blank at the end":    {at("http://a/ "), "http.url"},
		"port 0":              {at("http://a:0"), "http.url"},
		"port 65536":          {at("http://a:65536"), "http.url"},
		"empty port":          {at("http://a:"), "http.url"},
		"control character":   {at("http://a/\n"), "http.url"},
		"long url":            {at("http://a/" + strings.Repeat("x", maxURL)), "http.url"},
		"lower case method":   {http(func(h *HTTP) { h.Method = "post" }), "http.method"},
		"tunnel":              {http(func(h *HTTP) { h.Method = "CONNECT" }), "http.method"},
		"host header":         {header("host", "a"), "http.headers"},
		"own header":          {header("bElfry-Fence", "9"), "http.headers"},
		"own key":             {header("Idempotency-Key", "9"), "http.headers"},
		"key of the platform": {header("x-idempotency-key", "9"), "http.headers"},
		"length":              {header("Content-Length", "9"), "http.headers"},
		"framing":             {header("Transfer-Encoding", "chunked"), "http.headers"},
		"proxy":               {header("Proxy-Authorization", "x"), "http.headers"},
		"bad header name":     {header("X Y", "a"), "http.headers"},
		"empty header name":   {header("", "a"), "http.headers"},
		"two lines":           {header("X-A", "hush\r\nX-B: 1"), "http.headers.X-A"},
		"NUL in header":       {header("X-A", "hush\x00"), "http.headers.X-A"},
		"space at the end":    {header("X-A", "hush "), "http.headers.X-A"},
		"long headers":        {header("X-A", strings.Repeat("x", maxHeaderBytes)), "http.headers"},
		"one header twice":    {http(func(h *HTTP) { h.Headers = Texts(map[string]string{"X-A": "1", "x-a": "2"}) }), "http.headers"},
		"status 200":          {http(func(h *HTTP) { h.PermanentStatus = []int{200} }), "http.permanent_status"},
		"status 600":          {http(func(h *HTTP) { h.RetryStatus = []int{600} }), "http.retry_status"},
		"both lists":          {http(func(h *HTTP) { h.RetryStatus, h.PermanentStatus = []int{404}, []int{404} }), "http.retry_status"},
		"many statuses":       {http(func(h *HTTP) { h.RetryStatus = slicesOf(400, MaxStatuses+1) }), "http.retry_status"},
		"no argv":             {exec(func(e *Exec) { e.Argv = nil }), "exec.argv"},
		"empty program":       {exec(func(e *Exec) { e.Argv = []string{""} }), "exec.argv"},
		"NUL in argv":         {exec(func(e *Exec) { e.Argv = []string{"a", "b\x00"} }), "exec.argv"},
		"relative program":    {exec(func(e *Exec) { e.Argv = []string{"./a"} }), "exec.argv"},
		"many arguments":      {exec(func(e *Exec) { e.Argv = make([]string, MaxArgv+1); e.Argv[0] = "a" }), "exec.argv"},
		"long argv":           {exec(func(e *Exec) { e.Argv = []string{"a", strings.Repeat("x", maxExecBytes)} }), "exec.argv"},
		"env with =":          {env("A=B", ""), "exec.env"},
		"env without a name":  {env("", "x"), "exec.env"},
		"env with a digit":    {env("1A", "x"), "exec.env"},
		"own env":             {env("BELFRY_FENCE", "1"), "exec.env"},
		"NUL in env":          {env("A", "hush\x00"), "exec.env.A"},
		"relative dir":        {exec(func(e *Exec) { e.Dir = "tmp" }), "exec.dir"},
		"NUL in dir":          {exec(func(e *Exec) { e.Dir = "/tmp\x00" }), "exec.dir"},
		"exit code 0":         {exec(func(e *Exec) { e.PermanentExitCodes = []int{0} }), "exec.permanent_exit_codes"},
		"exit code 256":       {exec(func(e *Exec) { e.PermanentExitCodes = []int{256} }), "exec.permanent_exit_codes"},
		"no handler name":     {Spec{Handler: &Handler{}}, "handler.name"},
		"bad handler name":    {Spec{Handler: &Handler{Name: "-x"}}, "handler.name"},
	} {
		err := c.spec.Validate()
		if err == nil || fieldsOf(err) != c.field {
			t.Errorf("%s: got %v (fields %q), want one error of field %q", name, err, fieldsOf(err), c.field)
			continue
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows a secret: %v", name, err)
		}
	}
}

func slicesOf(value, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = value
	}
	return all
}

func TestEveryBadFieldIsReportedAtOnce(t *testing.T) {
	err := Spec{HTTP: &HTTP{Method: "x", Headers: Texts(map[string]string{"Host": "a"}), RetryStatus: []int{1}}}.Validate()
	if got := fieldsOf(err); got != "http.url http.method http.headers http.retry_status" {
		t.Errorf("got %q", got)
	}
}

func TestSpecsSurviveJSONAndTheStore(t *testing.T) {
	for text, want := range map[string]Spec{
		`{"http":{"url":"https://example.org","method":"PUT","headers":{"A":"b"},"permanent_status":[503],"retry_status":[404]}}`: {HTTP: &HTTP{URL: "https://example.org", Method: "PUT",
			Headers: Texts(map[string]string{"A": "b"}), PermanentStatus: []int{503}, RetryStatus: []int{404}}},
		`{"exec":{"argv":["a","b"],"env":{"C":"d"},"dir":"/e","permanent_exit_codes":[2]}}`: {Exec: &Exec{Argv: []string{"a", "b"},
			Env: Texts(map[string]string{"C": "d"}), Dir: "/e", PermanentExitCodes: []int{2}}},
		`{"handler":{"name":"f"}}`: {Handler: &Handler{Name: "f"}},
		`{"aws":{"arn":"a","role_arn":"b","invoke":"async","message_group":"c","source":"d","detail_type":"e"}}`: {AWS: &AWS{ARN: "a", RoleARN: "b",
			Invoke: InvokeAsync, MessageGroup: "c", Source: "d", DetailType: "e"}},
	} {
		var got Spec
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("got %s, %v; want %s", back, err, text)
		}
		stored, err := record.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		var read Spec
		if err := record.Decode(stored, &read); err != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("stored: got %+v, %v", read, err)
		}
	}
}

func TestSpecsShowNoSecret(t *testing.T) {
	for want, spec := range map[string]Spec{
		"http POST https://example.org/hook": {HTTP: &HTTP{URL: "https://u:hush@example.org/hook?token=hush#hush"}},
		"exec /bin/backup":                   {Exec: &Exec{Argv: []string{"/bin/backup", "--password=hush"}}},
		"handler report":                     {Handler: &Handler{Name: "report"}},
		"aws " + reportARN:                   {AWS: &AWS{ARN: reportARN}},
		"no target":                          {},
	} {
		if got := spec.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
