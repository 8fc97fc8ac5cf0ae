package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Every digit of a payload comes through: from a file to the target, back as a result, and into whatever form a command prints.
func TestDigitsComeThroughTheCommands(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	defer echo.Close()
	call := to(t, dev(t, "--data", t.TempDir()))
	const digits = "9007199254740993"
	holds := func(what, text string) {
		t.Helper()
		if !strings.Contains(text, digits) {
			t.Errorf("%s:\n%s", what, text)
		}
	}
	definition := `{"name": "%s", "target": {"http": {"url": "` + echo.URL + `"}}, "payload": {"id": ` + digits + `, "list": [-` + digits + `.50]}}`
	call(0, strings.Replace(definition, "%s", "json", 1), "job", "apply", "-f", "-")
	call(0, "name: yaml\ntarget: {http: {url: '"+echo.URL+"'}}\npayload: {id: "+digits+", list: [-"+digits+".50]}\n", "job", "apply", "-f", "-")
	for _, name := range []string{"json", "yaml"} {
		for _, form := range []string{"table", "json", "yaml"} {
			holds("job get -o "+form, call(0, "", "job", "get", name, "-o", form).out)
		}
		ran := call(0, "", "job", "trigger", name, "--wait", "-o", "json").out
		if r := decode[wire.Run](t, ran); string(r.Result) != "{\n    \"id\": "+digits+",\n    \"list\": [\n      -"+digits+".50\n    ]\n  }" {
			t.Errorf("the result of %s is %s", name, r.Result)
		}
		id := decode[wire.Run](t, ran).ID
		holds("run get -o yaml", call(0, "", "run", "get", id, "-o", "yaml").out)
		if got := call(0, "", "run", "payload", id).out; got != `{"id":`+digits+`,"list":[-`+digits+`.50]}` {
			t.Errorf("the payload of %s is printed as %q", name, got)
		}
		if got := call(0, "", "run", "result", id).out; got != `{"id":`+digits+`,"list":[-`+digits+`.50]}` {
			t.Errorf("the result of %s is printed as %q", name, got)
		}
		for _, form := range []string{"json", "yaml"} {
			holds("run payload -o "+form, call(0, "", "run", "payload", id, "-o", form).out)
			holds("run result -o "+form, call(0, "", "run", "result", id, "-o", form).out)
		}
	}
	for _, form := range []string{"json", "yaml"} {
		out := call(0, "", "export", "-o", form).out
		if strings.Count(out, digits) != 4 {
			t.Errorf("export -o %s:\n%s", form, out)
		}
		if again := call(0, out, "job", "apply", "-f", "-").out; strings.Count(again, "unchanged") != 2 {
			t.Errorf("what was exported as %s changed the jobs:\n%s", form, again)
		}
	}
	holds("diff", call(0, strings.NewReplacer("%s", "json", ".50", ".51").Replace(definition), "job", "apply", "-f", "-", "--dry-run").out)
}

// Half of a surrogate pair is refused where it is given, with its line and field; a target may answer with one.
func TestHalfAPairIsNotChangedInSilence(t *testing.T) {
	const odd = `{"a":"\ud800"}`
	says := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil // or Go finds one
		if r.URL.Path == "/json" {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, odd)
	}))
	defer says.Close()
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	job := func(name, more string) string {
		return "{\"name\": \"" + name + "\",\n\"target\": {\"http\": {\"url\": \"" + says.URL + "/" + name + "\"}}" + more + "}"
	}
	call(0, "["+job("json", "")+","+job("none", "")+`,{"name": "exec", "target": {"exec": {"argv": ["/bin/echo", "{}"]}}}]`, "job", "apply", "-f", "-")
	for more, want := range map[string]string{
		",\n\"payload\": {\"a\": [1,\n\"\\ud800\"]}": `line 4: payload.a[1]: got \ud800`,
		",\n\"description\": \"\\udc00\"":            `line 3: description: got \udc00`,
		",\n\"labels\": {\"\\udc00\": \"\"}":         `line 3: labels.\udc00: got \udc00`,
	} {
		if got := call(1, job("new", more), "job", "apply", "-f", "-"); !strings.Contains(got.errors, want) {
			t.Errorf("%s: %s, want %s", more, got.errors, want)
		}
	}
	if got := call(1, "name: new\ndescription: \"\\ud800\"\ntarget: {http: {url: 'http://a.b'}}\n", "job", "apply", "-f", "-"); !strings.Contains(got.errors, "line 2") {
		t.Errorf("as YAML: %s", got.errors)
	}
	if got := call(1, "", "job", "trigger", "json", "--payload", odd); !strings.Contains(got.errors, `payload.a: got \ud800`) {
		t.Errorf("trigger: %s", got.errors)
	}
	if got := call(1, "", "job", "pause", "json", "--reason", "a\xff"); !strings.Contains(got.errors, `reason: got \xff, want text in UTF-8`) {
		t.Errorf("pause: %s", got.errors)
	}
	call(exitNotFound, "", "job", "get", "new")
	if got := call(2, "hush\xff", "secret", "set", "token"); !strings.Contains(got.errors, "UTF-8") || strings.Contains(got.errors, "hush") {
		t.Errorf("a secret: %s", got.errors)
	}

	r := decode[wire.Run](t, call(0, "", "job", "trigger", "json", "--wait", "-o", "json").out)
	if text := call(0, "", "run", "get", r.ID, "-o", "json").out; !strings.Contains(text, `"a": "\ud800"`) || strings.Contains(text, "result_type") {
		t.Errorf("the result is shown as %s", text)
	}
	if got := call(1, "", "run", "get", r.ID, "-o", "yaml"); !strings.Contains(got.errors, "-o json can") || !strings.Contains(got.errors, "result.a") {
		t.Errorf("as YAML: %s%s", got.out, got.errors)
	}
	// No media type is claimed where the target named none.
	for name, want := range map[string]string{"none": `"{\"a\":\"\\ud800\"}"`, "exec": `"{}\n"`} {
		text := call(0, "", "job", "trigger", name, "--wait", "-o", "json").out
		if r := decode[wire.Run](t, text); string(r.Result) != want || strings.Contains(text, "result_type") {
			t.Errorf("%s is shown as %s", name, text)
		}
	}
}
