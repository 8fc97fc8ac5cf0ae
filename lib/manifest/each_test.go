package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/manifest"
)

func TestReadEachKeepsDocumentsBesideBrokenOnes(t *testing.T) {
	for name, c := range map[string]struct{ name, text, want string }{
		"YAML":            {"x.yaml", "a: 1\n---\nb: {{ x }}\n---\n# c\nc: [1,\n  {d: 2}]\n---\ne: 1\ne: 2\n", `1 {"a":1}, 3 line 3: want a name before the colon, 6 {"c":[1,{"d":2}]}, 9 line 10: e: given twice; first in line 9`},
		"no ending":       {"-", "a: 1\r\n---\r\n\tb: 1\r\n--- # two\r\nc: 1\r\n", `1 {"a":1}, 3 line 3: want YAML: found character that cannot start any token, 5 {"c":1}`},
		"JSON":            {"x.json", "{\n  \"a\": 1\n}\n{\n  \"b\": \n}\n{\n  \"c\": 1\n}\n", `1 {"a":1}, 4 line 6: want JSON: invalid character '}' looking for beginning of value, 7 {"c":1}`},
		"JSON of no name": {"-", "{\"a\": 1}\nAn error occurred\n{\"c\": 1}\n", `1 line 2: want JSON: invalid character 'A' looking for beginning of value, 3 {"c":1}`},
		"all sound":       {"-", "a: 1\n---\nb: 1\n", `1 {"a":1}, 3 {"b":1}`},
		"all broken":      {"-", "a: [\n---\nb: [\n", ""},
		"a value shared":  {"x.yaml", "x: [\n---\na: &a {b: 1}\nc: *a\n", `1 line 1: want YAML: did not find expected node content, 3 {"a":{"b":1},"c":{"b":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := manifest.ReadEach(c.name, []byte(c.text))
			var got []string
			for _, d := range documents {
				if d.Err != nil {
					got = append(got, fmt.Sprintf("%d %s", d.Line, d.Err))
					continue
				}
				got = append(got, fmt.Sprintf("%d %s", d.Line, d.Value.JSON()))
			}
			if text := strings.Join(got, ", "); text != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got\n%s, %v\nwant\n%s", text, err, c.want)
			}
		})
	}
	documents, _ := manifest.ReadEach("x.yaml", []byte("x: [\n---\na:\n  b:\n  - c\n  - d: 1\n"))
	if line := documents[1].Value.LineOf("a.b[1].d"); line != 6 {
		t.Errorf("a.b[1].d is in line %d, want 6", line)
	}
}
