package main

import (
	"context"
	"io"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/mailserver"
)

// mailed takes a mail apart: what it is about, and its text.
func mailed(t *testing.T, text string) (header mail.Header, body string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ = strings.Cut(text, "\n\n")
	return m.Header, body
}

// A crontab's MAILTO is what its owner is used to: who stands there hears of what fails, and of what runs nothing.
func TestFailuresOfACrontabAreMailed(t *testing.T) {
	server := (&mailserver.Server{}).Start(t)
	t.Setenv(mailVariable, server.URL("", ""))
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec", "--smtp-from", "belfry@example.org", "--console-url", "https://belfry.example.org/console/"))
	const crontab = "0 1 * * * true --silent\nMAILTO=ops@example.org,dev@example.org\n0 2 * * * false --loud\nMAILTO=\"\"\n0 3 * * * false --hushed\n"
	plan := call(0, crontab, "import", "crontab", "-", "--dry-run", "--timezone", "UTC").out
	if strings.Count(plan, "created") != 5 || !strings.Contains(plan, "mail-ops-") || !strings.Contains(plan, "2     note") {
		t.Errorf("the plan is\n%s", plan)
	}
	call(0, crontab, "import", "crontab", "-", "--timezone", "UTC", "--prefix", "web.")
	if again := call(0, crontab, "import", "crontab", "-", "--timezone", "UTC", "--prefix", "web.").out; strings.Count(again, "unchanged") != 4 {
		t.Errorf("imported again:\n%s", again)
	}
	var loud, mailer string
	for _, j := range decode[[]wire.Job](t, call(0, "", "job", "list", "-o", "json").out) {
		if strings.HasSuffix(j.Description, "--loud") {
			loud = j.Name
		} else if j.Target.Email != nil {
			mailer = j.Name
		} else if j.On.Failed != nil {
			t.Errorf("%s (%s) calls %s", j.Name, j.Description, j.On.Failed.Job)
		}
	}
	if !strings.HasPrefix(mailer, "web.mail-ops-") {
		t.Fatalf("the job that mails is %q", mailer)
	}
	if got := call(0, "", "job", "get", mailer).out; !strings.Contains(got, "email ops@example.org and 1 more") {
		t.Errorf("shown as\n%s", got)
	}
	failed := call(6, "", "job", "trigger", loud, "--wait", "-o", "json").out
	header, body := mailed(t, <-server.Mails)
	if header.Get("Subject") != loud+" failed" || header.Get("To") != "ops@example.org, dev@example.org" || header.Get("From") != "belfry@example.org" {
		t.Errorf("mailed under %v", header)
	}
	id := decode[wire.Run](t, failed).ID
	for _, want := range []string{"A run of the job " + loud + " was given up.", "State     ", "Error     exit: ", "https://belfry.example.org/console/runs/" + id} {
		if !strings.Contains(strings.ReplaceAll(body, "=\n", ""), want) {
			t.Errorf("the mail lacks %q:\n%s", want, body)
		}
	}
}

// Without a mail server a job that mails is refused where it is put, in words that say what is missing, and a crontab loses no job over it.
func TestNobodyMailsWithoutAServer(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec", "--remote-queue", "far"))
	const job = `{"target": {"email": {"to": ["ops@example.org"]}}`
	if got := call(1, job+"}", "job", "apply", "tell", "-f", "-"); !strings.Contains(got.errors, "BELFRY_SMTP_URL") {
		t.Errorf("refused with %s", got.errors)
	}
	call(0, job+`, "queue": "far"}`, "job", "apply", "tell", "-f", "-")
	got := call(0, "MAILTO=ops@example.org\n0 2 * * * false --loud\n", "import", "crontab", "-", "--timezone", "UTC")
	if strings.Count(got.out, "created") != 1 || !strings.Contains(got.out, "BELFRY_SMTP_URL") || strings.Contains(got.out, "a job mails") {
		t.Errorf("imported:\n%s%s", got.out, got.errors)
	}
}

func TestMailServersThatCannotBe(t *testing.T) {
	good, exposed := filepath.Join(t.TempDir(), "smtp"), filepath.Join(t.TempDir(), "empty")
	for file, text := range map[string]string{good: "smtps://ann:hush@mail.example.org\n", exposed: " \n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		variable string
		args     []string
		says     string
	}{
		"both":               {"smtp://mail.example.org", []string{"--smtp-url-file", good}, "exclude each other"},
		"no sender":          {"smtp://ann:hush@mail.example.org", nil, "want --smtp-from"},
		"sender with a name": {"smtp://ann:hush@mail.example.org", []string{"--smtp-from", "Belfry <b@example.org>"}, "without a name"},
		"no server":          {"", []string{"--smtp-from", "b@example.org"}, mailVariable},
		"recipients alone":   {"", []string{"--smtp-to", "*@example.org"}, mailVariable},
		"no URL":             {"ann:hush@mail.example.org", []string{"--smtp-from", "b@example.org"}, mailVariable},
		"password in clear":  {"smtp://ann:hush@mail.example.org?tls=none", []string{"--smtp-from", "b@example.org"}, "under TLS alone"},
		"no pattern":         {"smtp://mail.example.org", []string{"--smtp-from", "b@example.org", "--smtp-to", "example.org"}, "--smtp-to"},
		"no file":            {"", []string{"--smtp-url-file", good + "-gone", "--smtp-from", "b@example.org"}, "--smtp-url-file"},
		"empty file":         {"", []string{"--smtp-url-file", exposed, "--smtp-from", "b@example.org"}, "is empty"},
		"no console":         {"", []string{"--console-url", "belfry.example.org"}, "--console-url"},
	} {
		for _, command := range []string{"dev", "serve", "worker"} {
			t.Setenv(mailVariable, c.variable)
			args := map[string][]string{"dev": {"--data", t.TempDir()}, "serve": {"--data", t.TempDir()}, "worker": {"--queue", "far"}}[command]
			got := belfry(t, "", append(append([]string{command}, args...), c.args...)...)
			if got.code == 0 || !strings.Contains(got.errors, c.says) || strings.Contains(got.errors, "hush") {
				t.Errorf("%s, %s: code %d, %s; want %q", name, command, got.code, got.errors, c.says)
			}
		}
	}
}

// A worker elsewhere gets runs that mail where it has a mail server, and no others do.
func TestAWorkerElsewhereMails(t *testing.T) {
	server := (&mailserver.Server{Offers: []string{"AUTH PLAIN"}}).Start(t)
	address := dev(t, "--data", t.TempDir(), "--remote-queue", "far")
	call := to(t, address)
	call(0, `{"target": {"email": {"to": ["ops@example.org"], "subject": "Grüße"}}, "queue": "far", "payload": "hello"}`, "job", "apply", "tell", "-f", "-")
	file := filepath.Join(t.TempDir(), "smtp")
	if err := os.WriteFile(file, []byte(server.URL("ann:p%25w%20d@", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"worker", "--address", address, "--queue", "far", "--smtp-url-file", file, "--smtp-from", "belfry@example.org", "--smtp-to", "*@example.org"}, strings.NewReader(""), io.Discard, io.Discard)
	}()
	defer func() { stop(); <-ended }()
	r := decode[wire.Run](t, call(0, "", "job", "trigger", "tell", "--wait", "-o", "json").out)
	if header, body := mailed(t, <-server.Mails); header.Get("Subject") != "=?utf-8?B?R3LDvMOfZQ==?=" || body != "hello\n" {
		t.Errorf("mailed %v, %q", header, body)
	}
	if got := call(0, "", "run", "logs", r.ID).out; !strings.Contains(got, "took the mail") || strings.Contains(got, "p%") {
		t.Errorf("logged %s", got)
	}
}
