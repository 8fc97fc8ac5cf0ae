package main

import (
	"strings"
	"testing"
)

func TestNamesAndTemplates(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	for _, name := range []string{"first", "second"} {
		spec := `{"target": {"http": {"url": "https://example.org/` + name + `"}}, "labels": {"team": "billing"}}`
		if got := belfry(t, spec, "job", "apply", name, "-f", "-", "--address", address); got.code != exitOK {
			t.Fatal(got.errors)
		}
	}
	asked := belfry(t, "", "job", "trigger", "first", "--delay", "1h", "-o", "name", "--address", address)
	if asked.code != exitOK || !strings.HasPrefix(asked.out, "first~") {
		t.Fatalf("%+v", asked)
	}
	for _, c := range []struct{ args, form, want string }{
		{"job list", "name", "first\nsecond\n"},
		{"job get second", "name", "second\n"},
		{"run list --scheduled", "name", asked.out},
		{"token list", "name", ""},
		{"job list", "jsonpath={[*].name}", "first second\n"},
		{"job list", `jsonpath={range [*]}{.name}{"\t"}{.labels.team}{"\n"}{end}`, "first\tbilling\nsecond\tbilling\n"},
		{"job list", `jsonpath={[?(@.name=="second")].target.http.url}`, "https://example.org/second\n"},
		{"job list --prefix none", "jsonpath={[*].name}", ""},
		{"job get first", "jsonpath=.target.http.url", "https://example.org/first\n"},
		{"job get first", "jsonpath=target.http.url", "https://example.org/first\n"},
		{"job get first", "jsonpath={.status.generation}", ""},
		{"job get first", "jsonpath={.nothing}", ""},
		{"run list --scheduled", "jsonpath={[0].id}", asked.out},
	} {
		got := belfry(t, "", append(strings.Fields(c.args), "-o", c.form, "--address", address)...)
		digits := c.want == "" && strings.Contains(c.form, "generation") && strings.Trim(got.out, "0123456789\n") == "" && len(got.out) > 10
		if got.code != exitOK || got.out != c.want && !digits {
			t.Errorf("%s -o %s: code %d, %q, want %q; %s", c.args, c.form, got.code, got.out, c.want, got.errors)
		}
	}
	for args, want := range map[string]string{
		"job list -o jsonpath={.x":        "the template {.x: unclosed action; want one such as {.state}",
		"job list -o xml":                 `--output "xml": want table, json, yaml, name or jsonpath=TEMPLATE`,
		"run list --watch -o name":        "want --output table or json",
		"version -o name":                 "this result has no names",
		"export -o name":                  "--output name: want json or yaml",
		"export -o jsonpath={[*].target}": "want json or yaml",
	} {
		if got := belfry(t, "", append(strings.Fields(args), "--address", address)...); got.code != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("%s: code %d, %s, want %s", args, got.code, got.errors, want)
		}
	}
}

// A text that somebody else wrote acts on no terminal, whatever takes it out of its JSON.
func TestWhatATemplateTakesOutActsOnNoTerminal(t *testing.T) {
	got, err := picked("{.a}{.b}", []byte(`{"a": "\u001b[31mred\u202e", "b": 12345678901234567890}`))
	if err != nil || string(got) != "\ufffd[31mred\ufffd12345678901234567890\n" {
		t.Errorf("%q, %v", got, err)
	}
}
