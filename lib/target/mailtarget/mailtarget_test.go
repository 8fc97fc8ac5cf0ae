package mailtarget

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/tests/mailserver"
)

var due = time.Date(2026, 11, 18, 3, 0, 0, 0, time.UTC)

func attempt(payload string) target.Call {
	return target.Call{Tenant: "default", Run: "tell-ops~0mi4lf3k0~0000000000001", Job: "tell-ops", Attempt: 1, Fence: 1, Nominal: due, Payload: []byte(payload)}
}

// set is what a worker has that sends mails by a server.
func set(t *testing.T, s *mailserver.Server, user, options string) *target.Set {
	t.Helper()
	server, err := ParseServer(s.URL(user, options))
	if err != nil {
		t.Fatal(err)
	}
	sender := New(Config{Server: server, Now: func() time.Time { return due }, Console: "https://belfry.example.org/console/", RootCAs: s.Roots})
	targets, err := target.New(target.Config{Now: func() time.Time { return due }, Email: sender.Send, MailFrom: "belfry@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(targets.Close)
	return targets
}

var ops = target.Email{To: []string{"ops@example.org"}}

func send(t *testing.T, targets *target.Set, to target.Email, call target.Call) (target.Result, error) {
	t.Helper()
	return targets.Call(t.Context(), target.Spec{Email: &to}, call)
}

// read takes a mail apart as its reader's program does.
func read(t *testing.T, text string) (header mail.Header, subject, body string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 998 || strings.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
			t.Errorf("a line that no server need take: %q", line)
		}
	}
	plain, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	if subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	return m.Header, subject, strings.ReplaceAll(string(plain), "\r\n", "\n")
}

// dead is a run that was given up, and what its job calls then.
func dead(change func(*run.Run)) target.Call {
	r := run.Run{ID: run.FireID("report", due.UnixMilli()), Tenant: "default", State: run.Dead, Generation: 7, Started: due.Add(time.Second).UnixMilli(), Ended: due.Add(time.Minute).UnixMilli(),
		Attempt: 15, Reason: "attempts spent", Attempts: []run.Attempt{{Number: 15, Error: "http_status: answered 503"}}}
	if change != nil {
		change(&r)
	}
	event, _ := r.Ends()
	called := r.Call(event, "tell-ops")
	return target.Call{Tenant: "default", Run: called.ID.String(), Job: "tell-ops", Attempt: 1, Fence: 1, Nominal: called.ID.Time(), Payload: called.Payload.Inline}
}

func TestACallbackIsAMailForPeople(t *testing.T) {
	s := (&mailserver.Server{}).Start(t)
	targets := set(t, s, "", "")
	got, err := send(t, targets, ops, dead(nil))
	if err != nil {
		t.Fatal(err)
	}
	header, subject, body := read(t, <-s.Mails)
	if subject != "report failed" || header.Get("From") != "belfry@example.org" || header.Get("To") != "ops@example.org" || header.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("headers %v", header)
	}
	if header.Get("Date") != "Wed, 18 Nov 2026 03:00:00 +0000" || header.Get("Belfry-Job") != "tell-ops" {
		t.Errorf("headers %v", header)
	}
	want := `A run of the job report was given up.

Run       report~0mi4lf3k0
Job       report
State     dead
Due       2026-11-18 03:00:00 UTC
Started   2026-11-18 03:00:01 UTC
Ended     2026-11-18 03:01:00 UTC
Attempts  15
Reason    attempts spent
Error     http_status: answered 503

https://belfry.example.org/console/runs/report~0mi4lf3k0
`
	if id := run.FireID("report", due.UnixMilli()).String(); id != "report~0mi4lf3k0" {
		want = strings.ReplaceAll(want, "report~0mi4lf3k0", id)
	}
	if body != want {
		t.Errorf("the mail says\n%s\nwant\n%s", body, want)
	}
	var result struct {
		ID string `json:"message_id"`
	}
	if err := json.Unmarshal(got.Body, &result); err != nil || result.ID != header.Get("Message-Id") || got.ContentType != "application/json" {
		t.Errorf("result %s, %v", got.Body, err)
	}
	if heard := s.Heard(); !slices.Contains(heard, "MAIL FROM:<belfry@example.org>") || !slices.Contains(heard, "RCPT TO:<ops@example.org>") {
		t.Errorf("said %q", heard)
	}

	call := dead(func(r *run.Run) {
		r.State, r.Result = run.Succeeded, run.Ref{Inline: []byte(`{"sum": 12345678901234567890}`), Type: "application/json"}
	})
	if _, err := send(t, targets, ops, call); err != nil {
		t.Fatal(err)
	}
	if _, subject, body := read(t, <-s.Mails); subject != "report succeeded" || !strings.Contains(body, "Result:\n{\n  \"sum\": 12345678901234567890\n}\n") {
		t.Errorf("%s:\n%s", subject, body)
	}
	call = dead(func(r *run.Run) {
		r.State, r.Result = run.Succeeded, run.Ref{Inline: bytes.Repeat([]byte("x"), run.MaxTold+1)}
	})
	if _, err := send(t, targets, ops, call); err != nil {
		t.Fatal(err)
	}
	if _, _, body := read(t, <-s.Mails); !strings.Contains(body, "Result    larger than a mail should be") {
		t.Error(body)
	}
}

func TestAMailOfMissedFires(t *testing.T) {
	s := (&mailserver.Server{}).Start(t)
	targets := set(t, s, "", "")
	record := run.Run{ID: run.FireID("report", due.UnixMilli()), State: run.Skipped, Reason: "missed: none is caught up with", Ended: due.Add(6 * time.Hour).UnixMilli(),
		Through: due.Add(5 * time.Hour).UnixMilli(), Count: 6}
	called := record.Call(job.OnMissed, "tell-ops")
	call := target.Call{Tenant: "default", Run: called.ID.String(), Job: "tell-ops", Attempt: 1, Fence: 1, Nominal: called.ID.Time(), Payload: called.Payload.Inline}
	if _, err := send(t, targets, ops, call); err != nil {
		t.Fatal(err)
	}
	_, subject, body := read(t, <-s.Mails)
	want := `Fires of the job report were missed, and its catch-up policy does not run them.

Run       ` + record.ID.String() + `
Job       report
State     skipped
Missed    6 fires
First due 2026-11-18 03:00:00 UTC
Last due  2026-11-18 08:00:00 UTC
Ended     2026-11-18 09:00:00 UTC
Reason    missed: none is caught up with

https://belfry.example.org/console/runs/` + record.ID.String() + `
`
	if subject != "report missed 6 fires" || body != want {
		t.Errorf("%s\n\n%s", subject, body)
	}
}

// A callback with a window is one mail for people.
func TestAMailOfSeveral(t *testing.T) {
	s := (&mailserver.Server{}).Start(t)
	targets := set(t, s, "", "")
	window := job.Callback{Job: "tell-ops", Window: schedule.Duration(10 * time.Minute)}
	var failed, missed []run.Run
	for i := range 23 {
		name := "report"
		if i == 1 {
			name = "import"
		}
		r := run.Run{ID: run.FireID(name, due.Add(time.Duration(i)*time.Second).UnixMilli()), State: run.Dead, Reason: "attempts spent", Attempt: 2, Ended: due.Add(time.Duration(60+i) * time.Second).UnixMilli(),
			Attempts: []run.Attempt{{Number: 2, Error: "http: status 503\nand more"}}}
		failed = append(failed, r.CallAt(job.OnFailed, "tell-ops", window.Until(r.Ended)))
		r = run.Run{ID: run.FireID(fmt.Sprintf("job-%02d", i), due.UnixMilli()), State: run.Skipped, Reason: "missed: none is caught up with", Ended: due.Add(time.Minute).UnixMilli(),
			Through: due.Add(30 * time.Second).UnixMilli(), Count: i + 1}
		missed = append(missed, r.CallAt(job.OnMissed, "tell-ops", window.Until(r.Ended)))
	}
	ids := strings.NewReplacer("REPORT", run.FireID("report", due.UnixMilli()).String(), "IMPORT", run.FireID("import", due.Add(time.Second).UnixMilli()).String(),
		"JOB", run.FireID("job-01", due.UnixMilli()).String())
	mail := func(calls []run.Run) (subject, body string) {
		t.Helper()
		called := run.Together(calls, 10*time.Minute)
		if _, err := send(t, targets, ops, target.Call{Tenant: "default", Run: called.ID.String(), Job: "tell-ops", Attempt: 1, Fence: 1, Nominal: called.ID.Time(), Payload: called.Payload.Inline}); err != nil {
			t.Fatal(err)
		}
		_, subject, body = read(t, <-s.Mails)
		return subject, body
	}
	subject, body := mail(failed)
	want := `23 runs were given up from 2026-11-18 03:00:00 UTC to 2026-11-18 03:10:00 UTC.

    22  report
     1  import

REPORT
  dead at 2026-11-18 03:01:00 UTC, after 2 attempts
  attempts spent
  http: status 503
  and more
  https://belfry.example.org/console/runs/REPORT

IMPORT
  dead at 2026-11-18 03:01:01 UTC, after 2 attempts
`
	if subject != "23 runs failed" || !strings.HasPrefix(body, ids.Replace(want)) || !strings.HasSuffix(body, "\n\nand 3 more.\n") || strings.Count(body, "attempts spent") != run.MaxTogether {
		t.Errorf("%s\n\n%s", subject, body)
	}
	subject, body = mail(missed)
	want = `Fires were missed that the catch-up policies of their jobs do not run. This was found from 2026-11-18 03:00:00 UTC to 2026-11-18 03:10:00 UTC.

     1  job-00
`
	named := `
JOB
  2 fires, due from 2026-11-18 03:00:00 UTC to 2026-11-18 03:00:30 UTC
  missed: none is caught up with
  https://belfry.example.org/console/runs/JOB
`
	if subject != "more than 20 jobs missed fires" || !strings.HasPrefix(body, ids.Replace(want)) || !strings.Contains(body, ids.Replace(named)) || !strings.Contains(body, "     3  of other jobs\n") || !strings.HasSuffix(body, "\n\nand 3 more.\n") {
		t.Errorf("%s\n\n%s", subject, body)
	}
	// One alone is told as without a window.
	if subject, body = mail(failed[:1]); subject != "report failed" || !strings.HasPrefix(body, ids.Replace("A run of the job report was given up.\n\nRun       REPORT\n")) {
		t.Errorf("%s\n\n%s", subject, body)
	}
}

// What each event is called by the store is what a mail tells.
func TestEachEventHasItsTitle(t *testing.T) {
	for _, event := range job.Events() {
		r := run.Run{ID: run.FireID("report", due.UnixMilli()), State: run.Succeeded, Ended: due.UnixMilli()}
		e, ok := target.Call{Payload: r.Call(event, "tell").Payload.Inline}.Ending()
		if !ok || e.Title() != "report "+string(event) {
			t.Errorf("%s: %q, %v", event, e.Title(), ok)
		}
	}
}

func TestOtherPayloadsAreMailedAsTheyAre(t *testing.T) {
	s := (&mailserver.Server{}).Start(t)
	targets := set(t, s, "", "")
	for _, c := range []struct{ payload, want string }{
		{``, "The run has no payload.\n"},
		{`{"b": 1, "a": [1.10, "ü"]}`, "{\n  \"b\": 1,\n  \"a\": [\n    1.10,\n    \"ü\"\n  ]\n}\n"},
		{`"Grüße\n.\n..\n.hidden\n\nFrom me"`, "Grüße\n.\n..\n.hidden\n\nFrom me\n"},
		{`"` + strings.Repeat("x", 3000) + `"`, strings.Repeat("x", 3000) + "\n"},
		{`"a\r\n.\r\nQUIT\r\nb\rc"`, "a\n.\nQUIT\nb\nc\n"},
		{`{"event": "failed", "run": {"id": "x", "state": "dead", "job": "a\r\nBcc: all@example.org"}}`,
			"{\n  \"event\": \"failed\",\n  \"run\": {\n    \"id\": \"x\",\n    \"state\": \"dead\",\n    \"job\": \"a\\r\\nBcc: all@example.org\"\n  }\n}\n"},
	} {
		if _, err := send(t, targets, ops, attempt(c.payload)); err != nil {
			t.Fatalf("%s: %v", c.payload, err)
		}
		header, subject, body := read(t, <-s.Mails)
		if body != c.want || subject != "Run of tell-ops" || header.Get("Bcc") != "" {
			t.Errorf("%s: mailed %q %q, want %q", c.payload, subject, body, c.want)
		}
	}
	heard := strings.Join(s.Heard(), "\n")
	if n := strings.Count(heard, "RCPT"); n != 6 || strings.Contains(heard, "Bcc") {
		t.Errorf("said\n%s", heard)
	}
}

func TestSubjects(t *testing.T) {
	s := (&mailserver.Server{}).Start(t)
	targets := set(t, s, "", "")
	for _, subject := range []string{"Nightly report", strings.Repeat("Übergröße ", 15) + "!", "=?utf-8?q?=0D=0ABcc:_all@example.org?=", strings.Repeat("x", 200), "日本語の件名"} {
		to := ops
		to.Subject = subject
		if _, err := send(t, targets, to, dead(nil)); err != nil {
			t.Fatal(err)
		}
		if header, got, _ := read(t, <-s.Mails); got != subject || header.Get("Bcc") != "" {
			t.Errorf("subject %q, want %q", got, subject)
		}
	}
}

func TestTheMessageIDIsTheRuns(t *testing.T) {
	s := (&mailserver.Server{}).Start(t)
	targets := set(t, s, "", "")
	id := func(change func(*target.Call)) string {
		call := attempt(`"x"`)
		change(&call)
		if _, err := send(t, targets, ops, call); err != nil {
			t.Fatal(err)
		}
		header, _, _ := read(t, <-s.Mails)
		return header.Get("Message-Id")
	}
	first := id(func(*target.Call) {})
	if !strings.HasPrefix(first, "<belfry.") || !strings.HasSuffix(first, "@example.org>") || strings.Contains(first, "default") {
		t.Errorf("Message-ID %s", first)
	}
	if second := id(func(c *target.Call) { c.Attempt, c.Fence = 2, 9 }); second != first {
		t.Errorf("the second attempt's Message-ID is %s, the first's %s", second, first)
	}
	if other := id(func(c *target.Call) { c.Run += "2" }); other == first {
		t.Error("two runs have one Message-ID")
	}
	if other := id(func(c *target.Call) { c.Tenant = "other" }); other == first {
		t.Error("equal runs of two tenants have one Message-ID")
	}
}

func TestTLSAndPasswords(t *testing.T) {
	login := "ann:p%25w%20d@"
	for name, c := range map[string]struct {
		server        mailserver.Server
		user, options string
		foreign       bool   // the certificate's signer is unknown
		kind          string // of the failure
		says          string
		first         string // what is the first word under TLS; "" for none
	}{
		"plain on loopback":           {},
		"from the first byte":         {server: mailserver.Server{Implicit: true}, first: "TLS EHLO localhost"},
		"STARTTLS":                    {server: mailserver.Server{Offers: []string{"STARTTLS"}}, options: "?tls=starttls", first: "TLS EHLO localhost"},
		"no STARTTLS there":           {server: mailserver.Server{}, options: "?tls=starttls", kind: target.KindConnect, says: "no STARTTLS"},
		"STARTTLS refused":            {server: mailserver.Server{Offers: []string{"STARTTLS"}, Answers: map[string]string{"STARTTLS": "454 not now"}}, options: "?tls=starttls", kind: target.KindSMTP, says: "454 not now"},
		"words before TLS":            {server: mailserver.Server{Offers: []string{"STARTTLS"}, Answers: map[string]string{"STARTTLS": "220 go ahead\r\n550 injected"}}, options: "?tls=starttls", first: "TLS EHLO localhost"},
		"STARTTLS of somebody else":   {server: mailserver.Server{Offers: []string{"STARTTLS"}}, options: "?tls=starttls", foreign: true, kind: target.KindConnect, says: "certificate"},
		"TLS of somebody else":        {server: mailserver.Server{Implicit: true}, foreign: true, kind: target.KindConnect, says: "certificate"},
		"password under TLS":          {server: mailserver.Server{Implicit: true, Offers: []string{"AUTH LOGIN PLAIN"}}, user: login, first: "TLS EHLO localhost"},
		"password by LOGIN":           {server: mailserver.Server{Offers: []string{"8BITMIME", "SMTPUTF8", "AUTH LOGIN"}}, user: login},
		"password to loopback":        {server: mailserver.Server{Offers: []string{"AUTH PLAIN"}}, user: login},
		"nobody asks for a password":  {user: login, kind: target.KindConnect, says: "AUTH PLAIN"},
		"another password":            {server: mailserver.Server{Offers: []string{"AUTH PLAIN"}}, user: "ann:hush-hush@", kind: target.KindSMTP, says: "535"},
		"another password, by LOGIN":  {server: mailserver.Server{Offers: []string{"AUTH LOGIN"}}, user: "ann:hush-hush@", kind: target.KindSMTP, says: "535"},
		"a way to log in of its own ": {server: mailserver.Server{Offers: []string{"AUTH XOAUTH2"}}, user: login, kind: target.KindConnect, says: "AUTH PLAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.server.Start(t)
			if c.foreign {
				s.Roots = (&mailserver.Server{}).Start(t).Roots
			}
			_, err := send(t, set(t, s, c.user, c.options), ops, attempt(`"x"`))
			heard := s.Heard()
			var f *target.Failure
			if errors.As(err, &f); c.kind == "" && err != nil || c.kind != "" && (f == nil || f.Kind != c.kind || f.Permanent || !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, "hush")) {
				t.Fatalf("%v, want %s with %q, retried; said %q", err, c.kind, c.says, heard)
			}
			for i, line := range heard {
				switch {
				case strings.Contains(line, "SMTPUTF8"):
					t.Errorf("wanted of the servers behind: %s", line)
				case c.kind != "" && strings.Contains(line, "MAIL"):
					t.Errorf("went on: %q", heard)
				case c.first != "" && !strings.HasPrefix(line, "TLS ") && line != "EHLO localhost" && line != "STARTTLS":
					t.Errorf("said without TLS: %s", line)
				case c.first == "" && strings.HasPrefix(line, "TLS ") && !c.foreign:
					t.Errorf("line %d under TLS: %s", i, line)
				}
			}
			if c.first != "" && !slices.Contains(heard, c.first) {
				t.Errorf("said %q", heard)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		said, answer string
		permanent    bool
	}{
		{"", "421 too many", false},
		{"", "554 not you", false}, // of the worker, and not of the mail
		{"EHLO", "421 going down", false},
		{"MAIL", "451 later", false},
		{"MAIL", "553 5.7.1 not your address", true},
		{"RCPT", "450 4.2.0 greylisted", false},
		{"RCPT", "550 5.1.1 no such user", true},
		{"DATA", "451 later", false},
		{"DATA", "554 no", true},
		{".", "452 disk full", false},
		{".", "550-5.7.1 looks like spam\r\n550 5.7.1 to us", true},
	} {
		t.Run(c.said+" "+c.answer[:3], func(t *testing.T) {
			t.Parallel()
			s := (&mailserver.Server{Answers: map[string]string{c.said: c.answer}}).Start(t)
			if c.said == "EHLO" {
				s.Answers["HELO"] = c.answer
			}
			_, err := send(t, set(t, s, "", ""), ops, attempt(`"x"`))
			var f *target.Failure
			if !errors.As(err, &f) || f.Kind != target.KindSMTP || f.Permanent != c.permanent || !strings.Contains(f.Message, c.answer[:3]) || strings.Contains(f.Message, "\n") {
				t.Errorf("%v, permanent %v", err, f)
			}
		})
	}
}

// Where a conversation breaks, the error says what is known: up to the end of the mail's text nothing was taken.
func TestBrokenConversations(t *testing.T) {
	for said, kind := range map[string]string{"EHLO": target.KindConnect, "MAIL": target.KindConnect, "RCPT": target.KindConnect, "DATA": target.KindConnect, ".": target.KindLost} {
		t.Run("closed at "+said, func(t *testing.T) {
			t.Parallel()
			s := (&mailserver.Server{Drop: said, Answers: map[string]string{}}).Start(t)
			_, err := send(t, set(t, s, "", ""), ops, attempt(`"x"`))
			var f *target.Failure
			if !errors.As(err, &f) || f.Kind != kind || f.Permanent {
				t.Errorf("%v, want %s, retried", err, kind)
			}
		})
		t.Run("silent at "+said, func(t *testing.T) {
			t.Parallel()
			s := (&mailserver.Server{Hang: said}).Start(t)
			targets := set(t, s, "", "")
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-s.Hung; cancel() }()
			_, err := targets.Call(ctx, target.Spec{Email: &ops}, attempt(`"x"`))
			if !errors.Is(err, context.Canceled) || errors.Is(err, target.ErrUnsent) != (kind == target.KindConnect) {
				t.Errorf("%v", err)
			}
		})
		t.Run("too slow at "+said, func(t *testing.T) {
			t.Parallel()
			s := (&mailserver.Server{Hang: said}).Start(t)
			targets := set(t, s, "", "")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-s.Hung; cancel(context.DeadlineExceeded) }()
			_, err := targets.Call(ctx, target.Spec{Email: &ops}, attempt(`"x"`))
			want := target.KindTimeout
			if kind == target.KindConnect {
				want = target.KindConnect
			}
			var f *target.Failure
			if !errors.As(err, &f) || f.Kind != want {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		s := &mailserver.Server{Address: "127.0.0.1:1"}
		_, err := send(t, set(t, s, "", ""), ops, attempt(`"x"`))
		var f *target.Failure
		if !errors.As(err, &f) || f.Kind != target.KindConnect || f.Permanent {
			t.Errorf("%v", err)
		}
	})
}

// The whole conversation is bounded, however long the attempt may take.
func TestPatienceEnds(t *testing.T) {
	s := (&mailserver.Server{Hang: "MAIL"}).Start(t)
	server, _ := ParseServer(s.URL("", ""))
	sender := New(Config{Server: server, Now: time.Now})
	sender.patience = time.Millisecond
	to := ops
	to.From = "belfry@example.org"
	var f *target.Failure
	if _, err := sender.Send(t.Context(), to, attempt(`"x"`)); !errors.As(err, &f) || f.Kind != target.KindConnect || f.Permanent {
		t.Errorf("%v", err)
	}
}

func TestRecipients(t *testing.T) {
	three := target.Email{To: []string{"a@example.org", "b@example.org", "c@example.org"}}
	for name, c := range map[string]struct {
		answers   map[string]string
		mailed    bool
		permanent bool
		says      string // "" for success
	}{
		"all":              {mailed: true},
		"one is put off":   {answers: map[string]string{"RCPT TO:<b@": "450 greylisted", "RCPT TO:<c@": "550 gone"}, says: "450 b@example.org: greylisted"},
		"one is refused":   {answers: map[string]string{"RCPT TO:<b@": "550 gone"}, mailed: true, permanent: true, says: "not to everybody: 550 b@example.org: gone"},
		"all are refused":  {answers: map[string]string{"RCPT": "550 gone"}, permanent: true, says: "550 c@example.org: gone"},
		"one is forwarded": {answers: map[string]string{"RCPT TO:<b@": "251 will forward"}, mailed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (&mailserver.Server{Answers: c.answers}).Start(t)
			_, err := send(t, set(t, s, "", ""), three, attempt(`"x"`))
			var f *target.Failure
			if errors.As(err, &f); c.says == "" && err != nil || c.says != "" && (f == nil || f.Kind != target.KindSMTP || f.Permanent != c.permanent || !strings.Contains(f.Message, c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if mailed := len(s.Mails) == 1; mailed != c.mailed {
				t.Fatalf("mailed: %v", mailed)
			}
			if c.mailed {
				if header, _, _ := read(t, <-s.Mails); header.Get("To") != "a@example.org, b@example.org, c@example.org" {
					t.Errorf("to %q", header.Get("To"))
				}
			}
		})
	}
}

func TestServers(t *testing.T) {
	for text, want := range map[string]Server{
		"smtp://mail.example.org":                   {Host: "mail.example.org", Port: "587", StartTLS: true},
		"smtps://mail.example.org":                  {Host: "mail.example.org", Port: "465", Implicit: true},
		"smtp://a%40b:p%2Fw@mail.example.org:2525/": {Host: "mail.example.org", Port: "2525", StartTLS: true, User: "a@b", Password: "p/w"},
		"smtp://mail:25?tls=none":                   {Host: "mail", Port: "25"},
		"smtp://localhost:25":                       {Host: "localhost", Port: "25"},
		"smtp://ann:x@127.0.0.1:25":                 {Host: "127.0.0.1", Port: "25", User: "ann", Password: "x"},
		"smtp://[::1]:25":                           {Host: "::1", Port: "25"},
		"smtp://[::1]:25?tls=starttls":              {Host: "::1", Port: "25", StartTLS: true},
		"smtp://localhost.example.org:25":           {Host: "localhost.example.org", Port: "25", StartTLS: true},
		"smtp://mail.example.org:587?tls=starttls":  {Host: "mail.example.org", Port: "587", StartTLS: true},
		"smtp://ann:x@127.0.0.1:25?tls=none":        {Host: "127.0.0.1", Port: "25", User: "ann", Password: "x"},
		"smtps://ann:hush%23@[2001:db8::1]:4650":    {Host: "2001:db8::1", Port: "4650", Implicit: true, User: "ann", Password: "hush#"},
	} {
		if got, err := ParseServer(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                        "smtp:// or smtps://",
		"mail.example.org:25":     "smtp:// or smtps://",
		"http://mail.example.org": "smtp:// or smtps://",
		"smtp:mail.example.org":   "names no host",
		"smtp://":                 "names no host",
		"smtp://ann:hush@mail.example.org?tls=none": "under TLS alone",
		"smtp://ann@mail.example.org":               "go together",
		"smtp://:hush@mail.example.org":             "go together",
		"smtp://mail.example.org/hush":              "follows the host",
		"smtp://mail.example.org?tls=maybe":         "none or starttls",
		"smtps://mail.example.org?tls=none":         "no option tls",
		"smtp://mail.example.org?verify=no":         "another option",
		"smtp://mail.example.org:0":                 "1 to 65535",
		"smtp://ann:hu%zzsh@mail.example.org":       "cannot be read",
		"smtp://ann:hush%0Ax@mail.example.org":      "line's end",
	} {
		if got, err := ParseServer(text); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %+v, %v; want %q", text, got, err, says)
		}
	}
	if shown := fmt.Sprint(Server{Host: "mail", Port: "25", User: "ann", Password: "hush"}); shown != "smtp://mail:25" {
		t.Error(shown)
	}
}
