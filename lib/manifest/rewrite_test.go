package manifest_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/manifest"
)

func TestRewriteKeepsWhatStaysAsItWasWritten(t *testing.T) {
	text := `# the report
name: report # of the day
schedule:
  # on work days
  cron: "30 9 * * 1-5"
labels: {team: billing, tier: '1'}
on:
  failed: {job: tell}
payload: {order: 12345678901234567890}
target: {exec: {argv: [a, b]}}
`
	for name, c := range map[string]struct{ json, want string }{
		"nothing is another": {`{"name":"report","schedule":{"cron":"30 9 * * 1-5"},"labels":{"team":"billing","tier":"1"},"on":{"failed":{"job":"tell"}},"payload":{"order":12345678901234567890},"target":{"exec":{"argv":["a","b"]}}}`, text},
		"a value, a new field, one that goes, a list that grows": {
			`{"name":"report","schedule":{"cron":"0 9 * * *","timezone":"UTC"},"labels":{"team":"crm"},"on":{"failed":{"job":"tell"}},"payload":{"order":12345678901234567890},"target":{"exec":{"argv":["a","b","c: d"]}}}`,
			`# the report
name: report # of the day
schedule:
  # on work days
  cron: 0 9 * * *
  timezone: UTC
labels: {team: crm}
on:
  failed: {job: tell}
payload: {order: 12345678901234567890}
target: {exec: {argv: [a, b, 'c: d']}}
`,
		},
		"all goes": {`{"a":1}`, "a: 1\n"},
	} {
		v, err := manifest.ReadJSON([]byte(c.json))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(manifest.Rewrite([]byte(text), v)); got != c.want {
			t.Errorf("%s: written as\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func FuzzRewriteSaysWhatItIsGiven(f *testing.F) {
	for _, text := range []string{"", "a: &x {b: 1}\nc: *x\n", "a: {<<: {b: 1}, c: 2}\n", "- 1\n- 2\n", "a: [1\n", "a: 1\n---\nb: 2\n", "{\"a\": 1}", "a: |\n  text\n# end\n", "? a\n: b\n", "a: !!str 1\n", "\"a\": 'b'\n", "a: \"\\u202e\"\n"} {
		for _, json := range []string{`{"a":{"b":1},"c":{"b":2}}`, `{"a":{"b":2},"c":{"b":1}}`, `{"a":{"b":2,"c":2}}`, `[1,3,4]`, `{"a":"x\ny\n"}`, `{}`, `[]`, `"\u202e"`, `null`, `{"a":null,"b":[{}]}`} {
			f.Add(text, json)
		}
	}
	f.Fuzz(func(t *testing.T, text, json string) {
		v, err := manifest.ReadJSON([]byte(json))
		if err != nil {
			return
		}
		written := manifest.Rewrite([]byte(text), v)
		again, err := manifest.Read("x.yaml", written)
		if err != nil || len(again) != 1 || !bytes.Equal(again[0].JSON(), v.JSON()) {
			t.Fatalf("%s over\n%s\nis written as\n%s\nand read as %v, %v", json, text, written, again, err)
		}
	})
}

func TestAMistakeHasALineAndAColumn(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
	}{
		{"x.yaml", "a: 1\nb: 007\n", 2, 4},
		{"x.yaml", "schedule:\n  cron: */5 * * * *\n", 2, 9},
		{"x.yaml", "a:\n  c: 1\n  c: 2\n", 3, 3},
		{"x.yaml", "ä: [1,\n   {b: !x y}]\n", 2, 8},
		{"x.json", "{\n  \"ä\": x}", 2, 8},
		{"x.json", "{\"a\": 1", 1, 8},
		{"x.yaml", "a: 1\nb: ä\xff\n", 2, 5},
		{"x.yaml", "a: 1\n   b: 2\n", 2, 4},
	} {
		_, err := manifest.Read(c.name, []byte(c.text))
		var wrong *manifest.Error
		if !errors.As(err, &wrong) || wrong.Line != c.line || wrong.Column != c.column {
			t.Errorf("%q: %+v, want line %d, column %d", c.text, wrong, c.line, c.column)
		}
	}
}
