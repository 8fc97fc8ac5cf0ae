package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// offers is what a shell would offer for the last word of a line: what begins like it, without descriptions.
func offers(t *testing.T, line ...string) []string {
	t.Helper()
	got := belfry(t, "", append([]string{"__complete"}, line...)...)
	if got.code != 0 {
		t.Fatalf("%v: %d %s", line, got.code, got.errors)
	}
	var words []string
	for _, word := range strings.Split(strings.TrimSpace(got.out), "\n") {
		word, _, _ = strings.Cut(word, "\t")
		if !strings.HasPrefix(word, ":") && strings.HasPrefix(word, line[len(line)-1]) {
			words = append(words, word)
		}
	}
	return words
}

func TestShellsOfferWhatThereIs(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	for _, name := range []string{"report-daily", "report-weekly", "hello"} {
		call(0, `{"target": {"exec": {"argv": ["true"]}}, "labels": {"team": "x"}}`, "job", "apply", name, "-f", "-")
	}
	call(0, `{"limit": 1}`, "gate", "apply", "stripe", "-f", "-")
	id := strings.Fields(call(0, "", "job", "trigger", "hello", "--delay", "1h").out)[1]
	t.Setenv("BELFRY_ADDRESS", address)
	for _, c := range []struct{ line, want []string }{
		{[]string{"job", "get", ""}, []string{"hello", "report-daily", "report-weekly"}},
		{[]string{"job", "get", "rep"}, []string{"report-daily", "report-weekly"}},
		{[]string{"job", "delete", "hello", "report-daily", ""}, []string{"report-weekly"}},
		{[]string{"gate", "close", "s"}, []string{"stripe"}},
		{[]string{"run", "list", "--job", "h"}, []string{"hello"}},
		{[]string{"run", "get", "hello~"}, []string{id}},
		{[]string{"run", "cancel", ""}, []string{id}},
		{[]string{"run", "get", "report-daily~"}, nil},
		{[]string{"run", "list", "--state", "su"}, []string{"succeeded"}},
		{[]string{"run", "list", "--state", "dead,failed,s"}, []string{"dead,failed,scheduled", "dead,failed,succeeded", "dead,failed,skipped"}},
		{[]string{"run", "list", "--state", "dead,d"}, nil},
		{[]string{"token", "create", "--scope", "read,"}, []string{"read,run", "read,write", "read,work", "read,admin"}},
		{[]string{"job", "list", "--label", ""}, []string{"team=x"}},
		{[]string{"job", "list", "--timezone", "Europe/Ber"}, []string{"Europe/Berlin"}},
		{[]string{"job", "list", "-o", ""}, []string{"table", "json", "yaml", "name", "jsonpath="}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		{[]string{"config", "set", "tim"}, []string{"timezone"}},
		{[]string{"config", "unset", "serve.li"}, []string{"serve.listen"}},
		{[]string{"config", "set", "auth", ""}, []string{"token", "api-key", "iam"}},
		{[]string{"job", "list", "--auth", "i"}, []string{"iam"}},
		{[]string{"serve", "--auth", ""}, []string{"auto", "required"}},
	} {
		if got := offers(t, c.line...); !slices.Equal(got, c.want) {
			t.Errorf("%q: offered %q, want %q", c.line, got, c.want)
		}
	}
	configured(t, twoProfiles)
	if got := offers(t, "job", "list", "--profile", ""); !slices.Equal(got, []string{"home", "prod"}) {
		t.Errorf("offered profiles %q", got)
	}
	if got := offers(t, "config", "use-profile", "p"); !slices.Equal(got, []string{"prod"}) {
		t.Errorf("offered profiles %q", got)
	}
}

// Where a flag takes no file, names of files would be a wrong offer.
func TestFilesAreOfferedOnlyWhereTheyAreTaken(t *testing.T) {
	for _, c := range []struct {
		line []string
		want string
	}{
		{[]string{"job", "apply", "--file", ""}, ":0"},
		{[]string{"export", ""}, ":0"},
		{[]string{"serve", "--data", ""}, ":16"}, // folders
		{[]string{"run", "cancel", "--reason", ""}, ":4"},
		{[]string{"run", "list", "--since", ""}, ":4"},
		{[]string{"job", "list", "-n", ""}, ":4"},
	} {
		if got := belfry(t, "", append([]string{"__complete"}, c.line...)...).out; strings.TrimSpace(got) != c.want {
			t.Errorf("%q: offered %q, want %s", c.line, got, c.want)
		}
	}
}

// Whoever presses a key must not wait for a server that does not answer.
func TestCompletionWaitsForNobody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	// It would wait for ever: the client has no other bound.
	if got := offers(t, "job", "get", "--address", "http://"+silent.Addr().String(), "x"); got != nil {
		t.Errorf("offered %q", got)
	}
	if got := offers(t, "job", "get", "--address", "http://127.0.0.1:1", "x"); got != nil {
		t.Errorf("offered %q", got)
	}
	configured(t, "nonsense")
	if got := offers(t, "job", "get", "x"); got != nil {
		t.Errorf("offered %q", got)
	}
}

func TestCompletionScriptsAreScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := belfry(t, "", "completion", shell)
		if got.code != 0 || !strings.Contains(got.out, "__complete") {
			t.Errorf("%s: %d %s", shell, got.code, got.errors)
		}
		if path, err := exec.LookPath(shell); err == nil { // those that this host has judge it
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(got.out)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s", shell, err, out)
			}
		}
	}
	if got := belfry(t, "", "completion", "tcsh"); got.code != exitUsage || !strings.Contains(got.errors, "bash, zsh and fish") {
		t.Errorf("tcsh: %d %s", got.code, got.errors)
	}
}

func TestEveryCommandHasAManualPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if got := belfry(t, "", "man", "--dir", dir); got.code != 0 {
		t.Fatal(got.errors)
	}
	for _, name := range []string{"belfry", "belfry-job-apply", "belfry-config-show"} {
		text := readText(t, filepath.Join(dir, name+".1"))
		if !strings.HasPrefix(text, `.TH "`+strings.ReplaceAll(strings.ToUpper(name), "-", `\-`)+`" "1"`) || !strings.Contains(text, ".SH EXAMPLES") || !strings.Contains(text, ".SH SEE ALSO") {
			t.Errorf("%s.1:\n%s", name, text)
		}
	}
	apply := readText(t, filepath.Join(dir, "belfry-job-apply.1"))
	for _, want := range []string{"belfry\\-job\\-apply \\- ", ".TP\n\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fI", "\\fBbelfry\\-job\\fR(1)", "\n.PP\n", ".SH GLOBAL OPTIONS"} {
		if !strings.Contains(apply, want) {
			t.Errorf("the page of job apply lacks %q:\n%s", want, apply)
		}
	}
	if got := roff(".dot\n'quote \\ a-b"); got != "\\&.dot\n\\&'quote \\e a\\-b" {
		t.Errorf("%q", got)
	}
	if got := belfry(t, "", "man"); got.code != exitUsage {
		t.Errorf("without a folder: %d %s", got.code, got.errors)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
