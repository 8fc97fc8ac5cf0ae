package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// corpus gives the definitions of a folder of testdata by their files.
func corpus(t testing.TB, folder string) map[string]*manifest.Value {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	all := map[string]*manifest.Value{}
	for _, file := range files {
		if !manifest.Is(file) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		values, err := manifest.Read(file, text)
		if err != nil || len(values) != 1 {
			t.Fatalf("%s: %d values, %v", file, len(values), err)
		}
		all[file] = values[0]
	}
	return all
}

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workflow.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// agree compares what Check and Schema make of a definition: the schema refuses what has not the form, and nothing else.
func agree(t testing.TB, schema *jsonschema.Schema, v *manifest.Value, what string) {
	t.Helper()
	if v.Member("target") != nil {
		return // to the schema it is a job
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(v.JSON())))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	r := &report{}
	workflowShape.read(r, v, "")
	err = schema.Validate(document)
	if refused := err != nil; refused != (r.forms > 0) {
		t.Errorf("%s: the schema says %v; Check finds the form wrong %d times: %v", what, err, r.forms, r.err())
	}
}

func TestGoodDefinitionsAreTaken(t *testing.T) {
	schema := compiled(t)
	for file, v := range corpus(t, "good") {
		agree(t, schema, v, file)
		w, err := Check(v, AnyQueue)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		sound(t, w)
		again(t, w)
	}
}

// Each file has what is wrong with it beside it, a line for each error, and nothing else is.
func TestBadDefinitionsAreRefusedWithAllThatIsWrong(t *testing.T) {
	schema := compiled(t)
	for file, v := range corpus(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			agree(t, schema, v, file)
			_, err := Check(v, AnyQueue)
			text, problem := os.ReadFile(strings.TrimSuffix(file, filepath.Ext(file)) + ".want")
			if problem != nil {
				t.Fatal(problem)
			}
			left := invalid.All(err)
			for want := range strings.Lines(string(text)) {
				want = strings.TrimSuffix(want, "\n")
				field, message, _ := strings.Cut(want, ": ")
				found := -1
				for i, e := range left {
					shown := strings.TrimPrefix(e.Error(), e.Field+": ")
					if (e.Field == field || strings.HasPrefix(field, ".") && strings.HasSuffix(e.Field, field)) && strings.HasPrefix(shown, message) {
						found = i
					}
				}
				if found < 0 {
					t.Errorf("want %s", want)
					continue
				}
				left = append(left[:found:found], left[found+1:]...)
			}
			for _, e := range left {
				t.Errorf("also refused: %s", e)
			}
		})
	}
}

// sound checks what Workflow says of itself.
func sound(t testing.TB, w *Workflow) {
	t.Helper()
	for i, n := range w.Nodes {
		if n.Index != i {
			t.Errorf("node %d has index %d", i, n.Index)
		}
		if found, ok := w.Node(n.Path); !ok || found.Index != i {
			t.Errorf("%s is found as %+v", n.Path, found)
		}
		for _, needed := range n.Needs {
			if needed >= i || w.Nodes[needed].Scope != n.Scope || !contains(w.Nodes[needed].Next, i) {
				t.Errorf("%s needs %s", n.Path, w.Nodes[needed].Path)
			}
		}
		for _, next := range n.Next {
			if !contains(w.Nodes[next].Needs, i) {
				t.Errorf("%s is before %s", n.Path, w.Nodes[next].Path)
			}
		}
		if n.Scope != None && (n.Scope >= i || !contains(w.Nodes[n.Scope].Body.Steps, i) || w.Nodes[n.Scope].Depth+1 != n.Depth) || n.Scope == None && (!contains(w.Top, i) || n.Depth != 1) {
			t.Errorf("%s is in scope %d", n.Path, n.Scope)
		}
		if n.Switch != None && (w.Nodes[n.Switch].Kind != KindSwitch || !contains(n.Needs, n.Switch)) {
			t.Errorf("%s is led to by %d", n.Path, n.Switch)
		}
		for _, way := range n.Ways {
			if w.Nodes[way.To].Switch != i {
				t.Errorf("%s leads to %s, which does not know", n.Path, w.Nodes[way.To].Path)
			}
		}
		brings := map[Kind]bool{KindTask: n.Task != nil, KindScope: n.Body != nil, KindPass: n.Pass != nil, KindFail: n.Fail != nil, KindSwitch: n.Ways != nil}
		for kind, is := range brings {
			if is != (kind == n.Kind) {
				t.Errorf("%s is a %s, and has what a %s has: %v", n.Path, n.Kind, kind, is)
			}
		}
	}
}

func contains(all []int, one int) bool {
	for _, i := range all {
		if i == one {
			return true
		}
	}
	return false
}

// again checks that a workflow's own form gives the same workflow.
func again(t testing.TB, w *Workflow) {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Read(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if text2, err := json.Marshal(second); err != nil || string(text2) != string(text) || !reflect.DeepEqual(shown(w), shown(second)) {
		t.Errorf("%s becomes %s, %v", text, text2, err)
	}
}

// shown is a workflow as text, what it points to included.
func shown(w *Workflow) []string {
	var all []string
	for _, n := range w.Nodes {
		parts := []any{n.Index, n.Path, n.Kind, n.Depth, n.Scope, n.Needs, n.Next, n.Rule, n.Switch, n.Ways}
		for _, of := range []any{n.Task, n.Body, n.Pass, n.Fail} {
			text, _ := json.Marshal(of)
			parts = append(parts, string(text))
		}
		all = append(all, fmt.Sprint(parts...))
	}
	return append(all, fmt.Sprint(w.Top, w.Timeout))
}

// The order in which a definition is written is not part of it.
func TestOrderOfWritingDoesNotCount(t *testing.T) {
	var turned func(v *manifest.Value) *manifest.Value
	turned = func(v *manifest.Value) *manifest.Value {
		c := &manifest.Value{Kind: v.Kind, Line: v.Line, Scalar: v.Scalar, Items: v.Items}
		for _, m := range v.Members {
			value := m.Value
			if m.Name != "input" { // which is handed on as it is
				value = turned(value)
			}
			c.Members = append([]manifest.Member{{Name: m.Name, Line: m.Line, Value: value}}, c.Members...)
		}
		return c
	}
	for file, v := range corpus(t, "good") {
		one, err := Check(v, AnyQueue)
		other, err2 := Check(turned(v), AnyQueue)
		if err != nil || err2 != nil || !reflect.DeepEqual(shown(one), shown(other)) {
			t.Errorf("%s: %v, %v\n%v\n%v", file, err, err2, shown(one), shown(other))
		}
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	w, err := Read([]byte(`{"defaults": {"timeout": "10m", "retry": {"max_attempts": 3, "initial": "2s"}, "queue": "slow", "priority": "low"}, "steps": {
		"plain": {"handler": {"name": "x"}},
		"own": {"handler": {"name": "x"}, "timeout": "5s", "retry": {"initial": "7s"}, "queue": "fast", "priority": "high"},
		"once": {"handler": {"name": "x"}, "guarantee": "at_most_once"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"plain": "10m 3 2s 2 1h at_least_once slow low",
		"own":   "5s 3 7s 2 1h at_least_once fast high",
		"once":  "10m 1 2s 2 1h at_most_once slow low",
	} {
		n, _ := w.Node(path)
		got := fmt.Sprintf("%s %d %s %v %s %s %s %s", n.Task.Timeout, n.Task.Retry.MaxAttempts, n.Task.Retry.Initial, n.Task.Retry.Factor, n.Task.Retry.Max, n.Task.Guarantee, n.Task.Queue, n.Task.Priority)
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	bare, err := Read([]byte(`{"steps": {"a": {"handler": {"name": "x"}}, "f": {"fail": {}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a, f := bare.Nodes[0], bare.Nodes[1]
	if a.Task.Timeout.Std() != job.DefaultTimeout || a.Task.Queue != "" || a.Task.Priority != "" || a.Rule != AllSuccess || f.Fail.Code != DefaultCode ||
		bare.Timeout.Std() != DefaultTimeout {
		t.Errorf("%+v %+v %+v", a.Task, f.Fail, bare)
	}
}

// A default that no task could take is told once; one that does not go with what a step says, at the step.
func TestDefaultsAreJudgedOnceAndWithEachStep(t *testing.T) {
	for text, want := range map[string][]string{
		`{"defaults": {"timeout": "25h", "retry": {"initial": "2m", "max": "1m"}}, "steps": {"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}}, "c": {"handler": {"name": "x"}, "timeout": "26h"}}}`: {
			`defaults.timeout: got "25h", want a duration from 1s to 1d`, `defaults.retry.max: got "1m", want a duration from 2m to 7d`,
			`steps.c.timeout: got "26h", want a duration from 1s to 1d`},
		`{"defaults": {"retry": {"max": "1m"}}, "steps": {"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}, "retry": {"initial": "2m"}}}}`: {
			`steps.b.retry.max: got "1m", want a duration from 2m to 7d`},
		`{"defaults": {"timeout": "5s"}, "steps": {"a": {"handler": {"name": "x"}, "retry": {"max_attempts": 100, "initial": "7d"}}}}`: {
			`steps.a.retry.max: got "7d", want waits of at most 365d over all attempts`},
		`{"defaults": {"timeout": 5, "queue": "no queue"}, "steps": {"a": {"handler": {"name": "x"}}}}`: {
			`defaults.timeout: got a number, want a duration such as "90s", "1h30m" or "30d"`,
			`defaults.queue: got "no queue", want 1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit`},
	} {
		_, err := Read([]byte(text))
		var got []string
		for _, e := range invalid.All(err) {
			got = append(got, e.Error())
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n%q\nwant %q", text, got, want)
		}
	}
}

// What a server says of a task is told at the field of the step, or of the defaults where that has it.
func TestJudgeIsHeard(t *testing.T) {
	v, err := manifest.ReadJSON([]byte(`{"defaults": {"queue": "gone"}, "steps": {
		"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}}, "c": {"handler": {"name": "x"}, "queue": "lost"}, "d": {"handler": {"name": "x"}, "queue": "fine", "timeout": "3h"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Check(v, func(def job.Definition) error {
		switch {
		case def.Queue != "fine":
			return invalid.Field("queue", def.Queue, "fine")
		case def.Timeout.Std() > job.DefaultTimeout:
			return errors.Join(invalid.Field("timeout", def.Timeout.String(), "less"), invalid.Field("target", def.Target.String(), "another"))
		}
		return nil
	})
	want := []string{`defaults.queue: got "gone", want fine`, `steps.c.queue: got "lost", want fine`, `steps.d.timeout: got "3h", want less`, `steps.d: got "handler x", want another`}
	var got []string
	for _, e := range invalid.All(err) {
		got = append(got, e.Error())
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestBounds(t *testing.T) {
	steps := func(n int, more string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"s%d":{"pass":{}}`, i))
		}
		return `{"steps":{` + strings.Join(all, ",") + more + `}}`
	}
	padded := func(size int) string {
		const around = `{"steps":{"a":{"handler":{"name":"x"},"input":""}` // an input is short, so there are several
		text := around
		for i := 0; len(text) < size-5000; i++ {
			text += fmt.Sprintf(`,"b%d":{"pass":{"input":%q}}`, i, strings.Repeat("x", 4000))
		}
		text += `,"z":{"pass":{"input":"`
		return text + strings.Repeat("x", size-len(text)-5) + `"}}}}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"300 steps":         {steps(300, ""), ""},
		"301 steps":         {steps(301, ""), "steps: got 301 steps, want at most 300, those in scopes counted"},
		"301 with a scope":  {steps(299, `,"scope":{"steps":{"x":{"pass":{}}}}`), "steps: got 301 steps"},
		"exactly 32 KiB":    {padded(MaxBytes), ""},
		"a byte more":       {padded(MaxBytes + 1), "want at most 32768 bytes as JSON without blanks; it has 32769"},
		"8 KB of input":     {`{"steps":{"a":{"handler":{"name":"x"},"input":"` + strings.Repeat("x", job.MaxPayload-2) + `"}}}`, ""},
		"more of input":     {`{"steps":{"a":{"handler":{"name":"x"},"input":"` + strings.Repeat("x", job.MaxPayload-1) + `"}}}`, "steps.a.input: got 8193 bytes, want at most 8192 bytes"},
		"more of a pass":    {`{"steps":{"a":{"pass":{"input":"` + strings.Repeat("x", job.MaxPayload-1) + `"}}}}`, "steps.a.pass.input: got 8193 bytes"},
		"a long name":       {`{"steps":{"` + strings.Repeat("n", 64) + `":{"pass":{}}}}`, ""},
		"one letter more":   {`{"steps":{"` + strings.Repeat("n", 65) + `":{"pass":{}}}}`, "steps." + strings.Repeat("n", 65) + `: got "nnn`},
		"a long condition":  {`{"steps":{"a":{"switch":[{"when":"` + strings.Repeat("x", MaxCondition+1) + `","to":"b"}]},"b":{"pass":{}}}}`, "steps.a.switch[0].when: got "},
		"no JSON":           {`{`, "want JSON with each name once: line 1: want JSON: it ends too early"},
		"a long timeout":    {`{"timeout":"1826d","steps":{"a":{"pass":{}}}}`, `timeout: got 1826d, want a duration from 1s to 1825d`},
		"a short timeout":   {`{"timeout":"999ms","steps":{"a":{"pass":{}}}}`, `timeout: got 999ms, want a duration from 1s to 1825d`},
		"two of a name":     {`{"steps":{"a":{"pass":{}},"a":{"pass":{}}}}`, "want JSON with each name once: line 1: a: given twice"},
		"half a character":  {`{"steps":{"a":{"pass":{"input":"\ud800"}}}}`, `want JSON with each name once: line 1: steps.a.pass.input: got \ud800`},
		"deep beyond sense": {strings.Repeat(`{"steps":{"a":`, 600) + "1" + strings.Repeat("}}", 600), "want JSON with each name once: line 1: more than 500"},
	} {
		_, err := Read([]byte(c.text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %.300v, want %q", name, err, c.want)
		}
	}
}

// Whatever is wrong with a definition, the answer to it is small and soon there.
func TestManyErrorsStaySmall(t *testing.T) {
	var fields, needs, names strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&fields, `,"f%d":1`, i)
		fmt.Fprintf(&needs, `,"n%d"`, i)
	}
	for i := range 299 {
		fmt.Fprintf(&names, `,"s%d":{"needs":["s%d"],"pass":{}}`, i, (i+1)%299)
	}
	for _, text := range []string{
		`{"steps":{"a":{"pass":{}}}` + fields.String() + `}`,
		`{"steps":{"a":{"needs":["x"` + needs.String()[:1500] + `],"pass":{}}` + names.String() + `}}`,
	} {
		_, err := Read([]byte(text))
		first, more := invalid.First(err, invalid.Most)
		size := 0
		for _, e := range first {
			size += len(e.Error())
		}
		if len(first) == 0 || size > 64<<10 {
			t.Errorf("%d errors and %d more, of %d bytes", len(first), more, size)
		}
	}
}

// The fields of targets are listed by hand: a new one is to be added.
func TestFormsOfTargetsAreThoseOfTheProduct(t *testing.T) {
	compare := func(of reflect.Type, fields []field) {
		var want, got []string
		for i := range of.NumField() {
			if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "workflow" { // which no step is
				want = append(want, name)
			}
		}
		for _, f := range fields {
			got = append(got, f.name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", of, got, want)
		}
	}
	inside := func(fields []field, name string) []field {
		return object{fields: fields}.find(name).shape.(object).fields
	}
	compare(reflect.TypeFor[target.Spec](), targetForms)
	compare(reflect.TypeFor[target.HTTP](), inside(targetForms, "http"))
	compare(reflect.TypeFor[target.Sign](), inside(inside(targetForms, "http"), "sign"))
	compare(reflect.TypeFor[target.Exec](), inside(targetForms, "exec"))
	compare(reflect.TypeFor[target.Handler](), inside(targetForms, "handler"))
	compare(reflect.TypeFor[target.AWS](), inside(targetForms, "aws"))
	compare(reflect.TypeFor[target.Email](), inside(targetForms, "email"))
	compare(reflect.TypeFor[job.Retry](), retryShape.fields)
}
