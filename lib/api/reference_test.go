package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/api.md instead of comparing it")

// What docs/reference/api.md says is what /openapi.json says.
func TestTheReferenceIsTheDocument(t *testing.T) {
	var d referred
	if err := json.Unmarshal(documentText(t), &d); err != nil {
		t.Fatal(err)
	}
	path, want := filepath.Join("..", "..", "docs", "reference", "api.md"), d.page()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the API says of itself; make generate writes it", path)
	}
}

// referred is the part of the document that the page shows.
type referred struct {
	Paths      map[string]map[string]*call
	Components struct{ Schemas map[string]*shape }
}

type call struct {
	path, method string
	OperationID  string
	Summary      string
	Tags         []string
	Parameters   []parameter
	RequestBody  struct{ Content map[string]content }
	Responses    map[string]struct{ Content map[string]content }
	Security     []map[string][]string
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *shape
}

type content struct {
	Schema  *shape
	Example json.RawMessage
}

type shape struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format, Description  string
	Enum                 []any
	Properties           map[string]*shape
	AdditionalProperties any
	Items                *shape
	Required             []string
	OneOf                []*shape
	Minimum, Maximum     *float64
	MaxLength, MaxItems  *int
	Examples             []any
}

// chapters are the tags in the order in which a reader wants them, each with a line about it.
var chapters = []struct{ tag, title, says string }{
	{"jobs", "Jobs", "What runs when."},
	{"runs", "Runs", "What became of it."},
	{"dead letters", "Dead letters", "Runs that were given up."},
	{"tokens", "Tokens", "Who may call; see [access.md](../access.md)."},
	{"secrets", "Secrets", "What jobs need to know and nobody may see; see [secrets.md](../secrets.md)."},
	{"work", "Work", "For workers in other processes; see [worker.md](../worker.md#the-requests)."},
	{"system", "System", "The server itself."},
}

func (d *referred) page() string {
	var b strings.Builder
	b.WriteString("# Every request of the API\n\nThis page is made from the server's own `/openapi.json` (`make generate`). [api.md](../api.md) says what holds for\n" +
		"all requests, what errors look like, and how a request is sent again.\n")
	known := 0
	for _, chapter := range chapters {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", chapter.title, chapter.says)
		for _, c := range d.calls(chapter.tag) {
			known++
			d.describe(&b, c)
		}
	}
	for _, methods := range d.Paths {
		known -= len(methods)
	}
	if known != 0 {
		b.WriteString("\nAn operation has a tag that no chapter is for.\n")
	}
	b.WriteString("\n## Types\n\nFields in **bold** are always there, or must be given.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		d.fields(&b, d.Components.Schemas[name])
	}
	return b.String()
}

func (d *referred) calls(tag string) []*call {
	var all []*call
	for path, methods := range d.Paths {
		for method, c := range methods {
			if slices.Contains(c.Tags, tag) {
				c.path, c.method = path, strings.ToUpper(method)
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b *call) int { return strings.Compare(a.order(), b.order()) })
	return all
}

// order puts one thing before many of them, and looking before changing.
func (c *call) order() string {
	return strings.ReplaceAll(c.path, "{", " ") + " " + fmt.Sprint(slices.Index([]string{"GET", "PUT", "PATCH", "POST", "DELETE"}, c.method))
}

func (d *referred) describe(b *strings.Builder, c *call) {
	fmt.Fprintf(b, "\n### %s\n\n`%s %s`", c.OperationID, c.method, c.path)
	for _, scheme := range c.Security {
		for _, scopes := range scheme {
			fmt.Fprintf(b, " · scope `%s`", strings.Join(scopes, "`, `"))
		}
	}
	if len(c.Security) == 0 {
		b.WriteString(" · open")
	}
	fmt.Fprintf(b, "\n\n%s.\n", cell(c.Summary))
	if len(c.Parameters) > 0 {
		b.WriteString("\n| parameter | in | is | |\n|---|---|---|---|\n")
		for _, p := range c.Parameters {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", fieldName(p.Name, p.Required), p.In, p.Schema.is(), cell(p.Description))
		}
	}
	for _, body := range c.RequestBody.Content {
		fmt.Fprintf(b, "\nBody: %s\n", body.Schema.is())
		if len(body.Example) > 0 {
			var text bytes.Buffer
			_ = json.Indent(&text, body.Example, "", "  ")
			fmt.Fprintf(b, "\n```json\n%s\n```\n", text.String())
		}
	}
	b.WriteString("\nAnswers: ")
	var good, refused []string
	for _, status := range slices.Sorted(maps.Keys(c.Responses)) {
		if status >= "300" {
			refused = append(refused, status)
			continue
		}
		is := "nothing"
		for kind, answer := range c.Responses[status].Content {
			is = "`" + kind + "`"
			if answer.Schema != nil && kind == "application/json" {
				is = answer.Schema.is()
			}
		}
		good = append(good, status+" with "+is)
	}
	fmt.Fprintf(b, "%s; refusals %s.\n", strings.Join(good, ", "), strings.Join(refused, ", "))
}

func (d *referred) fields(b *strings.Builder, s *shape) {
	if len(s.Properties) == 0 {
		fmt.Fprintf(b, "%s. %s\n", s.is(), cell(s.Description))
		return
	}
	if s.Description != "" {
		b.WriteString(cell(s.Description) + "\n\n")
	}
	if len(s.OneOf) > 0 {
		var one []string
		for _, o := range s.OneOf {
			one = append(one, "`"+strings.Join(o.Required, "` with `")+"`")
		}
		fmt.Fprintf(b, "Has one of %s.\n\n", strings.Join(one, ", "))
	}
	b.WriteString("| field | is | |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		fmt.Fprintf(b, "| %s | %s | %s |\n", fieldName(name, slices.Contains(s.Required, name)), p.is(), cell(p.Description))
	}
}

func fieldName(name string, required bool) string {
	if required {
		return "**`" + name + "`**"
	}
	return "`" + name + "`"
}

// is says in a few words what a value is.
func (s *shape) is() string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	if len(s.Enum) > 0 {
		var all []string
		for _, v := range s.Enum {
			all = append(all, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(all, ", ")
	}
	kind, nullable := "", false
	switch t := s.Type.(type) {
	case string:
		kind = t
	case []any:
		for _, one := range t {
			if one == "null" {
				nullable = true
			} else {
				kind = fmt.Sprint(one)
			}
		}
	}
	switch {
	case kind == "array":
		kind = "list of " + s.Items.is()
	case kind == "object" && s.AdditionalProperties != nil && s.AdditionalProperties != false:
		kind = "map"
	case kind == "string" && s.Format == "date-time":
		kind = "time"
	case kind == "string" && len(s.Examples) == 1 && s.Examples[0] == "90s":
		kind = "duration"
	case kind == "string":
		kind = "text"
	case kind == "integer", kind == "number":
		kind = "number"
	case kind == "boolean":
		kind = "true, false"
	case kind == "" && len(s.OneOf) > 0:
		var all []string
		for _, o := range s.OneOf {
			all = append(all, o.is())
		}
		kind = strings.Join(all, " or ")
	case kind == "":
		kind = "any JSON"
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		kind += fmt.Sprintf(", %v to %v", *s.Minimum, *s.Maximum)
	case s.Maximum != nil:
		kind += fmt.Sprintf(", at most %v", *s.Maximum)
	case s.MaxItems != nil:
		kind += fmt.Sprintf(", up to %d", *s.MaxItems)
	}
	if nullable {
		kind += ", or null"
	}
	return kind
}

var cells = strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`, "<", `\<`)

func cell(text string) string { return cells.Replace(text) }
