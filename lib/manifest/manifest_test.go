package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

func read(t *testing.T, name, text string) []*manifest.Value {
	t.Helper()
	values, err := manifest.Read(name, []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return values
}

func TestValuesSurviveAsTheyStand(t *testing.T) {
	for _, c := range []struct{ yaml, json string }{
		{"123456789012345678901234567890", "123456789012345678901234567890"},
		{"-9223372036854775809", "-9223372036854775809"},
		{"0.1000", "0.1000"},
		{"1e3", "1e3"},
		{"12E+400", "12E+400"},
		{"1.", "1.0"},
		{".5", "0.5"},
		{"-.5e1", "-0.5e1"},
		{"5.e3", "5.0e3"},
		{"+5", "5"},
		{"-0", "-0"},
		{"0", "0"},
		{"0x1F", "31"},
		{"0o17", "15"},
		{"0xFFFFFFFFFFFFFFFFFF", "4722366482869645213695"},
		{`"12"`, `"12"`},
		{"'007'", `"007"`},
		{"!!str 12", `"12"`},
		{"!!int 12", "12"},
		{"yes", `"yes"`},
		{"off", `"off"`},
		{"1_000", `"1_000"`},
		{"12:30", `"12:30"`},
		{"2026-11-21T09:00:00Z", `"2026-11-21T09:00:00Z"`},
		{"2026-11-21", `"2026-11-21"`},
		{"True", "true"},
		{"~", "null"},
		{"null", "null"},
		{"30 9 * * 1-5", `"30 9 * * 1-5"`},
		{`"*/5 * * * *"`, `"*/5 * * * *"`},
		{`"<&> \u00e9 \t"`, `"<&> é \t"`},
		{"|\n  a\n   b\n", `"a\n b\n"`},
		{">-\n  a\n  b\n", `"a b"`},
		{"[1, {a: b}, []]", `[1,{"a":"b"},[]]`},
	} {
		got := string(read(t, "x.yaml", "v: "+c.yaml+"\n")[0].Member("v").JSON())
		if got != c.json {
			t.Errorf("%s is read as %s, want %s", c.yaml, got, c.json)
		}
		if json.Valid([]byte(c.yaml)) {
			if got := string(read(t, "x.json", `{"v": `+c.yaml+`}`)[0].Member("v").JSON()); got != c.yaml && got != c.json {
				t.Errorf("as JSON %s is read as %s", c.yaml, got)
			}
		}
	}
}

func TestWhatIsRefusedNamesItsLine(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"x.yaml", "a: 1\nb:\n  c: 1\n  c: 2\n", "line 4: c: given twice; first in line 3"},
		{"x.json", "{\"a\": 1,\n \"b\": {\"c\": 1,\n \"c\": 2}}", "line 3: c: given twice; first in line 2"},
		{"x.yaml", "a: 1\n b: 2\n", "line 2: want YAML"},
		{"x.yaml", "a: \"x\nb: 1\n", "want YAML"},
		{"x.yaml", "a: *none\n", "want YAML: unknown anchor 'none'"},
		{"x.yaml", "name: x\nschedule:\n  cron: */5 * * * *\n", `line 3: want YAML: what begins with * stands in quotes: "*/5 * * * *"`},
		{"x.yaml", "schedule:\n  cron: * * * * * # each minute\n", `line 2: want YAML: what begins with * stands in quotes: "* * * * *"`},
		{"x.yaml", "schedule: {timezone: UTC, cron: */5 * * * *}\n", `line 1: want YAML: what begins with * stands in quotes: "*/5 * * * *"`},
		{"x.yaml", "crons:\n- */5 * * * *\n", `line 2: want YAML: what begins with * stands in quotes: "*/5 * * * *"`},
		{"x.yaml", "cron: @daily\n", `line 1: want YAML: what begins with @ stands in quotes: "@daily"`},
		{"x.yaml", "a: 1\n---\nb: 007\n", "line 3: 007: a number to some"},
		{"x.yaml", "a: .inf\n", "line 1: .inf: JSON has no such number"},
		{"x.yaml", "a: !!binary aGk=\n", "line 1: !!binary aGk=: want the value without a tag"},
		{"x.yaml", "a: !!int x\n", "line 1: !!int x: want"},
		{"x.yaml", "a: !thing {}\n", "line 1: tag !thing: want none"},
		{"x.yaml", "? [a]\n: b\n", "line 1: want a name"},
		{"x.yaml", "a: &a [*a]\n", "alias"},
		{"x.yaml", "a:\n  <<: 5\n", "line 2: <<: got a number"},
		{"x.json", "{\"a\": 1,\n}", "line 2: want JSON"},
		{"x.json", "{}\n{\"a\":\n\nx}", "line 4: want JSON"},
		{"x.json", "{\"a\": [1,\n", "line 1: want JSON: it ends too early"},
		{"-", "{\"a\": 1,\n  \"b\" 2}", "line 2: want JSON"},
		{"x.json", "{\"a\": 1,\n\"b\": [\"\\ud83d\\ude00\",\n \"\\ud83d\"]}", `line 3: b[1]: got \ud83d, want whole characters`},
		{"x.json", "{}\n{\"\\udc00\": 1}", `line 2: \udc00: got \udc00`},
		{"-", `"\ud800"`, "YAML"},
		{"-", `["\ud800"]`, `line 1: [0]: got \ud800`},
		{"x.yaml", "a: 1\nb: \"\\ud83d\"\n", "line 2: want YAML"},
		{"x.yaml", "a: 1\nb: \"\\ud83d\\ude00\"\n", "line 2: want YAML"},
		{"x.yaml", "a: 1\nb: \xff\n", "line 2: want text in UTF-8"},
		{"x.yaml", "\xff\xfea\x00", "UTF-16"},
		{"x.json", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "inside one another"},
		{"x.yaml", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "inside one another"},
	} {
		values, err := manifest.Read(c.name, []byte(c.text))
		var wrong *manifest.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q gives %v, %v; want an error with %q", c.text, values, err, c.says)
		}
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	if _, err := manifest.Read("x.yaml", []byte(bomb)); err == nil || !strings.Contains(err.Error(), "aliases stand for more than") {
		t.Errorf("a billion laughs give %v", err)
	}
}

func TestDocuments(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string
		lines      []int
	}{
		{"x.yaml", "# a comment\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n---\nc: 3\n", `{"a":1} {"b":2} {"c":3}`, []int{2, 7, 10}},
		{"x.yaml", "", "", nil},
		{"x.yaml", "%YAML 1.2\n---\na: 1\n", `{"a":1}`, []int{3}},
		{"x.yaml", "--- {a: 1}\n--- |\n  text\n", `{"a":1} "text\n"`, []int{1, 2}},
		{"x.yaml", "\ufeffa: 1\r\nb: 2\r\n", `{"a":1,"b":2}`, []int{1}},
		{"x.json", "{\"a\": 1}\n\n{\"b\": 2}{\"c\": 3}\n", `{"a":1} {"b":2} {"c":3}`, []int{1, 3, 3}},
		{"-", "{\"a\": 1}\n{\"b\": 2}\n", `{"a":1} {"b":2}`, []int{1, 2}},
		{"-", "{\"a\": 1}\n---\n{\"b\": 2}\n", `{"a":1} {"b":2}`, []int{1, 3}},
		{"-", "{a: 1}\n", `{"a":1}`, []int{1}},
		{"-", "- a: 1\n- b\n", `[{"a":1},"b"]`, []int{1}},
		{"x.yaml", "base: &b {x: 1, y: 2}\na: {<<: *b, y: 3}\nc: *b\n", `{"base":{"x":1,"y":2},"a":{"y":3,"x":1},"c":{"x":1,"y":2}}`, []int{1}},
		{"x.yaml", "a: {<<: [{x: 1}, {x: 2, z: 3}]}\n", `{"a":{"x":1,"z":3}}`, []int{1}},
	} {
		values := read(t, c.name, c.text)
		var texts []string
		var lines []int
		for _, v := range values {
			texts, lines = append(texts, string(v.JSON())), append(lines, v.Line)
		}
		if got := strings.Join(texts, " "); got != c.want || fmt.Sprint(lines) != fmt.Sprint(c.lines) {
			t.Errorf("%q gives %s in lines %v, want %s in %v", c.text, got, lines, c.want, c.lines)
		}
	}
}

func TestLinesOfFields(t *testing.T) {
	yaml := "name: x\ntarget:\n  exec:\n    argv:\n    - a\n    - b\nlabels: {a.b: c,\n  d: e}\n"
	text := "{\"name\": \"x\",\n\"target\": {\n\"exec\": {\n\"argv\": [\n\"a\",\n\"b\"]}},\n\"labels\": {\"a.b\": \"c\",\n\"d\": \"e\"}}"
	for name, text := range map[string]string{"x.yaml": yaml, "x.json": text} {
		v := read(t, name, text)[0]
		for path, want := range map[string]int{"": 1, "name": 1, "target": 2, "target.exec": 3, "target.exec.argv[1]": 6, "target.exec.dir": 3,
			"target.http.url": 2, "labels.a.b": 7, "labels.d": 8, "nothing": 1} {
			if got := v.LineOf(path); got != want {
				t.Errorf("%s: %s is in line %d, want %d", name, path, got, want)
			}
		}
	}
}

func TestWithAndWithout(t *testing.T) {
	v := read(t, "x.json", `{"b": 1, "name": "old", "c": 2}`)[0]
	if got := string(v.With("name", &manifest.Value{Kind: manifest.Text, Scalar: "new"}).JSON()); got != `{"name":"new","b":1,"c":2}` {
		t.Error(got)
	}
	if got := string(v.Without("name").JSON()); got != `{"b":1,"c":2}` {
		t.Error(got)
	}
}

func TestYAMLThatIsWrittenIsPlainToRead(t *testing.T) {
	v := read(t, "x.json", `{"name": "report", "schedule": {"cron": "*/5 * * * *", "timezone": "Europe/Berlin"}, "on": "yes", "n": 1e3, "s": "1e3",
		"timeout": "30s", "at": "2026-11-21T09:00:00Z", "argv": ["sh", "-c", "echo 'a'\necho b\n"], "empty": {}, "none": [], "nil": null, "t": "true"}`)[0]
	want := `name: report
schedule:
  cron: '*/5 * * * *'
  timezone: Europe/Berlin
"on": "yes"
"n": 1e3
s: "1e3"
timeout: 30s
at: "2026-11-21T09:00:00Z"
argv:
- sh
- -c
- |
  echo 'a'
  echo b
empty: {}
none: []
nil: null
t: "true"
`
	if got := string(manifest.YAML(v)); got != want {
		t.Errorf("written as\n%s\nwant\n%s", got, want)
	}
	if got := string(manifest.YAML(v, v)); got != want+"---\n"+want {
		t.Errorf("two documents are\n%s", got)
	}
}

func FuzzYAMLIsReadAsItWasWritten(f *testing.F) {
	for _, text := range []string{`{"a": "x\ny\n"}`, `"\r"`, `" x"`, `"x "`, `"\n"`, `"a\n\n"`, `"\u2028"`, `"\u0000"`, `"---"`, `"# x"`, `"a: b"`, `{"": {"\t": "\u0085"}}`,
		`"\n x"`, `"x\n  y\n z"`, `"!x"`, `"&a"`, `"- a"`, `["\ufeff", "\ud83d\ude00", "\u200e"]`, `"%"`, `"@a"`, "\"`\"", `{"a": [[], {}, [{"b": null}]]}`, `"?"`, `"a #b"`, `" \n"`, `"0x"`, `"\ufffe"`,
		`{"\u202e": "\u202ex\ny"}`, `["\u001b[2J", "a\u009b\nb", "\u007f", "\u2066a\u2069", "\\u202e\u202e"]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := manifest.Read("x.json", []byte(text))
		if err != nil {
			return
		}
		for _, v := range values {
			written := manifest.YAML(v)
			again, err := manifest.Read("x.yaml", written)
			if err != nil || len(again) != 1 || !bytes.Equal(again[0].JSON(), v.JSON()) {
				t.Fatalf("%s is written as\n%s\nand read as %v, %v", v.JSON(), written, again, err)
			}
			for _, r := range string(written) {
				if terminal.Acts(r) && r != '\n' {
					t.Fatalf("%s is written with %U as\n%q", v.JSON(), r, written)
				}
			}
		}
	})
}

func TestReadJSONReadsOneValue(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string]string{
		`{"a": ["\\", "[[[", "]\"["], "b": 1.50}`: "",
		deep(500):                "",
		"\n" + deep(501):         "line 2: more than 500 values inside one another",
		"[\n" + deep(9000) + "]": "line 2: more than 500 values inside one another",
		strings.Repeat(`["[",`, 400) + "1" + strings.Repeat("]", 400): "",
		`1 2`:    "line 1: got 2 values, want one",
		``:       "line 1: got 0 values, want one",
		`{"a":1`: "line 1: want JSON: it ends too early",
	} {
		v, err := manifest.ReadJSON([]byte(text))
		if want == "" && (err != nil || v == nil) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
}
