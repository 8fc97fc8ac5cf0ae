package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// walk visits a command and all below it.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// A variable of a shell that is not set leaves a flag without a value. No command takes that for a flag that was left out.
func TestNoFlagTakesAnEmptyTextForNone(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	walk(wholeTree(), func(cmd *cobra.Command) {
		var names []string
		cmd.InheritedFlags() // brings those of the root in
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			_, list := f.Value.(pflag.SliceValue)
			if f.Value.Type() == "string" || list {
				names = append(names, f.Name)
			}
		})
		for _, name := range names {
			// Anew each time: what was given stays given.
			root := wholeTree()
			found, _, err := root.Find(strings.Fields(cmd.CommandPath())[1:])
			if err != nil {
				t.Fatal(err)
			}
			found.InheritedFlags()
			err = found.Flags().Set(name, "")
			if err == nil {
				err = root.PersistentPreRunE(found, nil)
			}
			if err == nil || !strings.Contains(err.Error(), "--"+name) {
				t.Errorf("%s --%s \"\": got %v, want it refused by name", cmd.CommandPath(), name, err)
			}
			seen[cmd.CommandPath()+" --"+name] = true
		}
	})
	for _, want := range []string{"belfry run cancel --job", "belfry run cancel --state", "belfry run retry --error", "belfry dead-letter redrive --to", "belfry job pause --prefix",
		"belfry job delete --label", "belfry cron next --from", "belfry job trigger --at", "belfry run list --address"} {
		if !seen[want] {
			t.Errorf("%s was not tried", want)
		}
	}
}

// What is given for "everything" may be nothing but --all: each of these was once taken for no filter, no limit or no time. The server
// is not asked.
func TestWhatWasGivenIsNeverTakenForNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the server was asked: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	const early = "from 1970 on"
	type row struct {
		args string
		says string
	}
	rows := []row{
		{"run cancel --all --job= --dry-run", "--job: got an empty text, want JOB"},
		{"run cancel --all --error= --yes", "--error: got an empty text"},
		{"run cancel --all --state= --yes", "--state: got an empty text"},
		{"run cancel --job a --state queued, --yes", "--state: got an empty text"},
		{"run cancel --all --label= --yes", "--label: got an empty text"},
		{"run cancel --all --from= --yes", "--from: got an empty text"},
		{"run cancel --all --since= --yes", "--since: got an empty text"},
		{"run cancel --job a --max 0 --yes", "--max 0: want 1 or more"},
		{"run cancel a~0mi4lf3k0 --max 0", "--max and --dry-run are for --all or a filter"},
		{"run retry --all --per-second 0 --yes", "--per-second 0: want a number that is more than 0"},
		{"run retry --all --per-second -1 --yes", "--per-second -1: want a number that is more than 0"},
		{"run retry --all --per-second NaN --yes", "--per-second NaN: want"},
		{"run retry a~0mi4lf3k0 --per-second 0", "--per-second 0: want"},
		{"dead-letter redrive --all --per-second 0 --yes", "--per-second 0: want"},
		{"dead-letter redrive --all --per-second +Inf --yes", "--per-second +Inf: want"},
		{"dead-letter redrive --all --max 0 --yes", "--max 0: want 1 or more"},
		{"dead-letter redrive --all --job= --yes", "--job: got an empty text"},
		{"job delete --all --prefix= --yes", "--prefix: got an empty text"},
		{"job trigger a --delay=", "--delay: got an empty text"},
		{"job trigger a --at 0001-01-01T00:00:00Z", early},
		{"cron next @daily --from 0001-01-01T00:00:00Z", early},
		{"cron next @daily --from 1969-12-31T23:59:59.9Z", early},
		{"cron next @daily --timezone Asia/Tokyo --from 1970-01-01", early},
	}
	for _, command := range []string{"run cancel --yes --job z", "run retry --yes --job z", "run list", "dead-letter list", "dead-letter redrive --yes --job z", "dead-letter redrive --yes"} {
		for _, flag := range []string{"--from", "--to"} {
			for _, at := range []string{"0001-01-01T00:00:00Z", "0001-01-01", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"} {
				rows = append(rows, row{command + " " + flag + " " + at, early})
			}
		}
	}
	for _, row := range rows {
		got := belfry(t, "", append(strings.Fields(row.args), "--address", server.URL)...)
		if got.code != exitUsage || !strings.Contains(got.errors, row.says) {
			t.Errorf("belfry %s: code %d, %s%s; want %d and %q", row.args, got.code, got.out, got.errors, exitUsage, row.says)
		}
	}
	if got := belfry(t, "", "cron", "next", "@daily", "--from", "1970-01-01T00:00:00Z", "-n", "1"); got.out != "1970-01-02T00:00:00Z\n" {
		t.Errorf("from the first time there is: %s%s", got.out, got.errors)
	}
}

// Whoever gives too few arguments, or too many, is told what is wanted.
func TestEveryCommandSaysWhichArgumentsItWants(t *testing.T) {
	refused := 0
	walk(wholeTree(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || cmd.Args == nil {
			return
		}
		for n := range 9 {
			args := strings.Fields(strings.Repeat("x ", n))
			if err := cmd.Args(cmd, args); err != nil {
				refused++
				if strings.HasSuffix(strings.TrimSpace(strings.SplitN(err.Error(), "\n", 2)[0]), "want") {
					t.Errorf("%s with %d arguments: %v", cmd.CommandPath(), n, err)
				}
			}
		}
	})
	if refused < 100 {
		t.Errorf("only %d refusals were read", refused)
	}
}

// A list is taken with its flag for each entry and with commas. Names of files may have commas in them.
func TestEveryListOfFlagsIsTakenRepeatedAndWithCommas(t *testing.T) {
	lists := map[string]bool{}
	walk(wholeTree(), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, list := f.Value.(pflag.SliceValue); !list || f.Name == "file" {
				return
			}
			lists[f.Name] = true
			entries := map[string][]string{
				"label":         {"team=billing", "env=prod"},
				"set":           {"team=billing", "env=prod"},
				"allow-address": {"100.64.0.0/10", "192.0.2.1"},
				"aws-target":    {"arn:aws:lambda:*:123456789012:function:a", "arn:aws:lambda:*:123456789012:function:b"},
				"on-failed":     {"tell-ops", "acme=ops"},
				"on-missed":     {"tell-ops", "acme=ops"},
				"on-recovered":  {"tell-ops", "acme=ops"},
			}[strings.Replace(f.Name, "deny", "allow", 1)]
			if entries == nil {
				entries = []string{"a", "b"}
			}
			read := func(texts ...string) (all []string) {
				found, _, err := wholeTree().Find(strings.Fields(cmd.CommandPath())[1:])
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range texts {
					if err := found.Flags().Set(f.Name, text); err != nil {
						t.Fatalf("%s --%s %s: %v", cmd.CommandPath(), f.Name, text, err)
					}
				}
				l := labels{texts: found.Flags().Lookup(f.Name).Value.(pflag.SliceValue).GetSlice()}
				if f.Name != "label" && f.Name != "set" {
					return l.texts
				}
				if err := l.read(); err != nil {
					t.Fatal(err)
				}
				return strings.Split(labelsOf(l.values), ",")
			}
			repeated, commas := read(entries...), read(strings.Join(entries, ","))
			if len(repeated) != 2 || !slices.Equal(repeated, commas) {
				t.Errorf("%s --%s: repeated it is %q, with commas %q", cmd.CommandPath(), f.Name, repeated, commas)
			}
		})
	})
	for _, want := range []string{"label", "state", "scope", "queue", "remote-queue", "host", "work", "allow-address", "aws-target", "on-failed", "on-missed", "on-recovered"} {
		if !lists[want] {
			t.Errorf("--%s was not tried", want)
		}
	}
}
