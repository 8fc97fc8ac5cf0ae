package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// schemaText is what tests read of a schema.
type schemaText struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format               string
	Pattern              string
	Properties           map[string]*schemaText
	AdditionalProperties json.RawMessage
	Items                *schemaText
	OneOf                []*schemaText
	ReadOnly             bool
	Required             []string
	Enum                 []any
	Examples             []any
	Minimum              *float64
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	MaxProperties        *int
	ExclusiveMinimum     *float64
}

// surface is the OpenAPI document as far as tests walk over it.
type surface struct {
	Paths map[string]map[string]*struct {
		OperationID string
		RequestBody *struct {
			Content map[string]struct{ Schema *schemaText }
		}
		Parameters []struct {
			Name, In string
			Schema   *schemaText
		}
	}
	Components struct{ Schemas map[string]*schemaText }
}

func (s *server) surface() surface {
	s.t.Helper()
	var d surface
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "").is(200).body, &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (d surface) resolve(schema *schemaText) *schemaText {
	for schema.Ref != "" {
		schema = d.Components.Schemas[schema.Ref[strings.LastIndexByte(schema.Ref, '/')+1:]]
	}
	return schema
}

// free is the schema of the values of a map, nil for an object whose names are all known.
func (o *schemaText) free() *schemaText {
	var values schemaText
	if len(o.AdditionalProperties) == 0 || o.AdditionalProperties[0] != '{' || json.Unmarshal(o.AdditionalProperties, &values) != nil {
		return nil
	}
	return &values
}

// anyJSON reports whether a value of every type fits.
func (o *schemaText) anyJSON() bool { return o.Type == nil && len(o.OneOf) == 0 }

// walk visits every place of a request in which a value may stand. in makes a whole body of a value there: it holds nothing else.
func (d surface) walk(schema *schemaText, field string, in func(value string) string, visit func(field string, schema *schemaText, in func(string) string)) {
	schema = d.resolve(schema)
	if schema.ReadOnly {
		return
	}
	visit(field, schema, in)
	for _, name := range sorted(schema.Properties) {
		at := strings.TrimPrefix(field+"."+name, ".")
		d.walk(schema.Properties[name], at, func(value string) string { return in(fmt.Sprintf("{%q:%s}", name, value)) }, visit)
	}
	if values := schema.free(); values != nil {
		d.walk(values, field+".x", func(value string) string { return in(`{"x":` + value + `}`) }, visit)
	}
	if schema.Items != nil {
		d.walk(schema.Items, field+"[0]", func(value string) string { return in("[" + value + "]") }, visit)
	}
	for _, one := range schema.OneOf {
		d.walk(one, field, in, visit)
	}
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// bodies visits every operation with a body.
func (d surface) bodies(visit func(method, path string, schema *schemaText)) {
	for _, path := range sorted(d.Paths) {
		for _, method := range sorted(d.Paths[path]) {
			if op := d.Paths[path][method]; op.RequestBody != nil {
				for _, content := range op.RequestBody.Content {
					visit(strings.ToUpper(method), strings.NewReplacer("{job}", "a", "{run}", "a~0mi4lf3k0", "{secret}", "s", "{gate}", "g", "{token}", "0f3a5b7c9d1e2f40").Replace(path), content.Schema)
				}
			}
		}
	}
}

// Every list and every map of a request has a bound in the document, so that no text becomes many times its size.
func TestP11_EveryListOfARequestIsBounded(t *testing.T) {
	d := start(t, 0, everything(t)).surface()
	d.bodies(func(method, path string, schema *schemaText) {
		d.walk(schema, "", func(value string) string { return value }, func(field string, schema *schemaText, _ func(string) string) {
			if schema.Type == "array" && schema.MaxItems == nil || schema.free() != nil && schema.MaxProperties == nil {
				t.Errorf("%s %s: %s has no bound", method, path, field)
			}
		})
	})
}

// allocated is how many bytes of memory the process has taken so far, those included that it has given back.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// What a request costs, in memory and in the size of its answer, is bounded by a few times its size, however wrong it is.
func TestP11_HostileBodiesCostAFewTimesTheirSize(t *testing.T) {
	if raced {
		t.Skip("under the race detector pools forget what they hold, so that requests take more memory")
	}
	const size = 100 << 10
	fill := func(format string) string {
		var text strings.Builder
		for i := 0; text.Len() < size; i++ {
			if i > 0 {
				text.WriteByte(',')
			}
			if strings.Contains(format, "%") {
				fmt.Fprintf(&text, format, i)
			} else {
				text.WriteString(format)
			}
		}
		return text.String()
	}
	unknown, same, numbers, texts, objects, empty := fill(`"k%d":0`), fill(`"k":0`), "["+fill("1")+"]", "["+fill(`"a"`)+"]", "["+fill("{}")+"]", "["+fill(`"k%d"`)+"]"
	long, values := `"`+strings.Repeat("x", size)+`"`, fill(`"k%d":""`)
	hostile := map[string]string{
		"unknown names": "{" + unknown + "}", "one name": "{" + same + "}", "names of texts": "{" + values + "}", "numbers": numbers, "texts": texts, "different texts": empty,
		"objects": objects, "lists": "[" + fill("[]") + "]", "lists of lists": "[" + fill("[[1,[]]]") + "]", "a long text": long, "a long name": "{" + long + ":" + long + "}", "a long number": strings.Repeat("1", size),
		"deep": strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "escapes": `"` + strings.Repeat(`\u0001`, size/6) + `"`, "no JSON": strings.Repeat("{", size),
	}
	s := start(t, 0, everything(t))
	s.send("PUT", "/v1/jobs/a", echo).is(201) // which a patch merges with
	d := s.surface()
	tried := map[*schemaText]bool{} // what several requests have in common is tried at the first
	d.bodies(func(method, path string, schema *schemaText) {
		d.walk(schema, "", func(value string) string { return value }, func(field string, schema *schemaText, in func(string) string) {
			if field != "" && tried[schema] {
				return
			}
			tried[schema] = true
			for _, name := range sorted(hostile) {
				if schema.Type != "object" && schema.Type != "array" && !schema.anyJSON() && name != "a long text" && name != "escapes" {
					continue // as at any other place
				}
				s.costs(method, path, in(hostile[name]), name+" as "+field, 1)
			}
		})
	})
	for _, path := range sorted(d.Paths) {
		if d.Paths[path]["get"] != nil {
			s.costs("GET", path+"?"+strings.Repeat("a&bb&", 10_000), "", "unknown parameters", 1)
		}
	}
}

// costs sends a request, and fails the test where it costs more than times a few times its size.
func (s *server) costs(method, path, body, what string, times int) reply {
	s.t.Helper()
	const memory, memoryOfAny, answer, answerOfAny = 12, 1 << 20, 2, 64 << 10
	sent := len(body) + len(path)
	most := times*memory*sent + memoryOfAny
	var w *httptest.ResponseRecorder
	took := most + 1
	for try := 0; try < 3 && took > most; try++ { // a collection in between takes from the pools what they hold, and the process does other things, too
		r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", "application/json")
		w = httptest.NewRecorder()
		before := allocated()
		s.handler.ServeHTTP(w, r)
		took = int(allocated() - before)
	}
	if took > most {
		s.t.Errorf("%s %.60s with %s, %d bytes: took %d bytes of memory, want at most %d", method, path, what, sent, took, most)
	}
	if got, most := w.Body.Len(), times*answer*sent+answerOfAny; got > most {
		s.t.Errorf("%s %.60s with %s, %d bytes: answered %d bytes, want at most %d", method, path, what, sent, got, most)
	}
	if w.Code >= 500 {
		s.t.Errorf("%s %.60s with %s: %d %.300s", method, path, what, w.Code, w.Body)
	}
	if w.Code >= 400 {
		var p wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || len(p.Errors) > invalid.Most {
			s.t.Errorf("%s %.60s with %s: %d errors, %v; want at most %d", method, path, what, len(p.Errors), err, invalid.Most)
		}
	}
	return reply{s.t, method + " " + path, w.Code, w.Header(), w.Body.Bytes()}
}

// Of many wrong fields the first are named, and the others counted.
func TestP11_ErrorsAreNamedUpToABound(t *testing.T) {
	s := start(t, 0, everything(t))
	var body strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&body, `"k%d":0,`, i)
	}
	p := into[wire.Problem](s.send("PUT", "/v1/jobs/a", "{"+body.String()+`"target":{"handler":{"name":"echo"}}}`).is(400))
	if len(p.Errors) != invalid.Most || p.MoreErrors != 5000-invalid.Most || !strings.HasSuffix(p.Error(), "and 4900 more") {
		t.Errorf("%d errors and %d more, in words %.100q…", len(p.Errors), p.MoreErrors, p.Error())
	}
}

// What many jobs of a batch have wrong is named up to the same bound in all, and the others say how much it is.
func TestP11_ErrorsOfABatchAreNamedUpToABound(t *testing.T) {
	s := start(t, 0, everything(t))
	var env strings.Builder
	for n := range 100 {
		fmt.Fprintf(&env, `"=%d":"",`, n)
	}
	for _, count := range []int{1, 3, 99, 100, 101, 500} {
		var jobs []string
		for i := range count {
			jobs = append(jobs, fmt.Sprintf(`{"name":"j%d","target":{"exec":{"argv":["true"],"env":{%s}}}}`, i, strings.TrimSuffix(env.String(), ",")))
		}
		got := into[wire.JobVerdicts](s.costs("POST", "/v1/jobs/batch", `{"jobs":[`+strings.Join(jobs, ",")+"]}", "wrong environments", 13).is(200))
		named, more := 0, 0
		for i, v := range got.Items {
			if v.Problem == nil || v.Status != 422 || v.Problem.Code != "invalid" || (i < invalid.Most) != (len(v.Problem.Errors) > 0 && v.Problem.Detail != "") {
				t.Fatalf("verdict %d of %d: %+v, want it refused, with a field where it is one of the first", i, count, v.Problem)
			}
			named, more = named+len(v.Problem.Errors), more+v.Problem.MoreErrors
		}
		if named != invalid.Most || named+more != count*100 {
			t.Errorf("of %d jobs %d fields are named, and %d more counted; want %d of %d", count, named, more, invalid.Most, count*100)
		}
	}
}

// least is the smallest value of a schema, the one of that number where there are several.
func least(schema *schemaText, i int) string {
	switch {
	case len(schema.Enum) > 0:
		return fmt.Sprintf("%q", schema.Enum[0])
	case strings.Contains(schema.Pattern, "~"):
		return fmt.Sprintf(`"a~%09d"`, i)
	case schema.Type == "string":
		return fmt.Sprintf("%q", strconv.FormatInt(int64(i), 36))
	}
	return "1"
}

// No answer on many is larger than four times its request and 64 KB, however little is said of each: for each list of a body in the document,
// as many of the smallest items as it may have, that can be done, that cannot, and that make no sense.
func TestP11_AnswersToListsAreBoundedByTheirRequests(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "echo"}}, "labels": {"team": "`+strings.Repeat("x", 120)+`"}}`).is(201)
		lists := map[string]bool{}
		try := func(method, path, field, body string) {
			t.Helper()
			got := s.send(method, path, body)
			if most := 4*len(body) + 64<<10; len(got.body) > most {
				t.Errorf("%s %s: %d answers %d bytes to %d, want at most %d: %.300s", method, path, got.status, len(got.body), len(body), most, got.body)
			}
			lists[method+" "+path+" "+field] = lists[method+" "+path+" "+field] || got.status == 200
		}
		d := s.surface()
		d.bodies(func(method, path string, schema *schemaText) {
			whole := d.resolve(schema)
			for field, list := range whole.Properties {
				if list = d.resolve(list); list.Type != "array" {
					continue
				}
				item := d.resolve(list.Items)
				most := 1000
				if list.MaxItems != nil {
					most = *list.MaxItems
				}
				kinds := map[string]func(i int) string{
					"the smallest": func(i int) string { return least(item, i) },
					"no object":    func(int) string { return "1" },
					"empty":        func(int) string { return "{}" },
				}
				if item.Type == "object" {
					delete(kinds, "the smallest")
					for _, name := range []string{"a", "b"} { // a job that there is, and one that there is not
						kinds["job "+name] = func(int) string { return fmt.Sprintf(`{"job":%q}`, name) }
					}
					for what, more := range map[string]string{"right": "", "wrong": `,"timeout":"25h"`, "wrong often": `,"timeout":"25h","retention":"1h","queue":"x","labels":{"-":""}`} {
						kinds[what] = func(i int) string {
							return fmt.Sprintf(`{"name":"%s","target":{"handler":{"name":"e"}}%s}`, strconv.FormatInt(int64(i)+36, 36), more)
						}
					}
				}
				for _, kind := range sorted(kinds) {
					var items []string
					for i := range most {
						items = append(items, kinds[kind](i))
					}
					for _, beside := range []string{"", `,"per_second":10000`} {
						body := fmt.Sprintf(`{%q:[%s]%s}`, field, strings.Join(items, ","), beside)
						try(method, path, field, body)
						if whole.Properties["dry_run"] != nil {
							try(method, path, field, strings.TrimSuffix(body, "}")+`,"dry_run":true}`)
						}
						try(method, path+"?dry_run=true", field, body)
					}
				}
			}
		})
		// What stands: cancelled, retried and cancelled again by their IDs, with all that a run can tell of itself.
		var asked, ids []string
		for range 1000 {
			asked = append(asked, `{"job":"a","delay":"1h"}`)
		}
		for _, v := range into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", `{"runs":[`+strings.Join(asked, ",")+"]}").is(200)).Items {
			ids = append(ids, fmt.Sprintf("%q", v.ID))
		}
		all := `{"runs":[` + strings.Join(ids, ",") + "]"
		for range 2 {
			try("POST", "/v1/runs/cancel", "runs", all+`,"reason":"`+strings.Repeat("r", 120)+`"}`)
			try("POST", "/v1/runs/retry", "runs", all+`,"per_second":10000}`)
			try("POST", "/v1/dead-letters/redrive", "runs", all+`,"per_second":10000}`)
		}
		for _, path := range []string{"/v1/jobs/batch jobs", "/v1/runs/batch runs", "/v1/runs/cancel runs", "/v1/runs/retry runs", "/v1/dead-letters/redrive runs"} {
			if !lists["POST "+path] {
				t.Errorf("%s: none of its lists was taken", path)
			}
		}
	})
}
