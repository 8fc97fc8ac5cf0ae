package target

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func TestEmailsThatAreRefusedNameTheField(t *testing.T) {
	long := strings.Repeat("a", 64) + "@" + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60) + "." + strings.Repeat("d", 60) + ".org"
	many := make([]string, MaxRecipients+1)
	for i := range many {
		many[i] = strings.Repeat("a", i+1) + "@example.org"
	}
	for name, c := range map[string]struct {
		email  Email
		fields string
	}{
		"one":                     {Email{To: []string{"ops@example.org"}}, ""},
		"several":                 {Email{To: []string{"a.b+c_d'e@mail.example.org", "root@localhost", "x@xn--bcher-kva.example"}, Subject: "Grüße, 50 %", From: "nightly@example.org"}, ""},
		"none":                    {Email{}, "email.to"},
		"too many":                {Email{To: many}, "email.to"},
		"twice":                   {Email{To: []string{"a@example.org", "A@Example.org"}}, "email.to[1]"},
		"empty":                   {Email{To: []string{""}}, "email.to[0]"},
		"no domain":               {Email{To: []string{"root"}}, "email.to[0]"},
		"no local part":           {Email{To: []string{"@example.org"}}, "email.to[0]"},
		"two signs":               {Email{To: []string{"a@b@example.org"}}, "email.to[0]"},
		"a name around":           {Email{To: []string{"Ops <ops@example.org>"}}, "email.to[0]"},
		"two in one":              {Email{To: []string{"a@example.org, b@example.org"}}, "email.to[0]"},
		"quoted":                  {Email{To: []string{`"a b"@example.org`}}, "email.to[0]"},
		"dots":                    {Email{To: []string{"a..b@example.org", ".a@example.org", "a@example..org", "a@example.org."}}, "email.to[0] email.to[1] email.to[2] email.to[3]"},
		"another header":          {Email{To: []string{"a@example.org\r\nBcc: all@example.org"}}, "email.to[0]"},
		"a line's end at the end": {Email{To: []string{"a@example.org\n"}}, "email.to[0]"},
		"another command":         {Email{To: []string{"a@example.org>\r\nDATA"}}, "email.to[0]"},
		"end of the brackets":     {Email{To: []string{"a@example.org>"}}, "email.to[0]"},
		"parameter":               {Email{To: []string{"a@example.org NOTIFY=NEVER"}}, "email.to[0]"},
		"address of a host":       {Email{To: []string{"a@[127.0.0.1]"}}, "email.to[0]"},
		"other letters":           {Email{To: []string{"a@bücher.example", "ä@example.org"}}, "email.to[0] email.to[1]"},
		"NUL":                     {Email{To: []string{"a\x00@example.org"}}, "email.to[0]"},
		"long":                    {Email{To: []string{long + strings.Repeat("e", 60)}}, "email.to[0]"},
		"long local part":         {Email{To: []string{strings.Repeat("a", 65) + "@example.org"}}, "email.to[0]"},
		"from of two lines":       {Email{To: []string{"a@example.org"}, From: "b@example.org\nX: y"}, "email.from"},
		"subject of two lines":    {Email{To: []string{"a@example.org"}, Subject: "a\r\nBcc: all@example.org"}, "email.subject"},
		"subject with a return":   {Email{To: []string{"a@example.org"}, Subject: "a\rb"}, "email.subject"},
		"subject of other lines":  {Email{To: []string{"a@example.org"}, Subject: "a\u2028b"}, "email.subject"},
		"subject that is no text": {Email{To: []string{"a@example.org"}, Subject: "a\xff"}, "email.subject"},
		"subject of blanks":       {Email{To: []string{"a@example.org"}, Subject: " "}, "email.subject"},
		"long subject":            {Email{To: []string{"a@example.org"}, Subject: strings.Repeat("x", maxSubject+1)}, "email.subject"},
	} {
		if got := fieldsOf(Spec{Email: &c.email}.Validate()); got != c.fields {
			t.Errorf("%s: %q, want %q", name, got, c.fields)
		}
	}
	if got := fieldsOf(Spec{Email: &Email{To: []string{"a@example.org"}}, Handler: &Handler{Name: "f"}}.Validate()); got != "" {
		t.Errorf("two kinds: field %q", got)
	}
	if err := (Spec{Email: &Email{To: []string{"a@example.org"}}, Handler: &Handler{Name: "f"}}).Validate(); err == nil {
		t.Error("two kinds at once are accepted")
	}
}

func TestMailPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, address string
		allowed          bool
	}{
		{"*", "a@example.org", true},
		{"*@example.org", "a@example.org", true},
		{"*@example.org", "A@EXAMPLE.org", true},
		{"*@example.org", "a@example.org.evil.org", false},
		{"*@example.org", "a@evilexample.org", false},
		{"*@*.example.org", "a@mail.example.org", true},
		{"ops-?@example.org", "ops-1@example.org", true},
		{"ops-?@example.org", "ops-12@example.org", false},
		{"ops@example.org", "dev@example.org", false},
	} {
		all, err := ParseMailPatterns(" , " + c.pattern)
		if err != nil || len(all) != 1 || all[0].Allows(c.address) != c.allowed {
			t.Errorf("%s, %s: %v, %v; want %v", c.pattern, c.address, all, err, c.allowed)
		}
	}
	for _, text := range []string{"example.org", "*@", "a b@example.org", "*@example.org;*@example.com"} {
		if _, err := ParseMailPatterns(text); len(invalid.All(err)) != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What a worker's operator has not allowed is not handed to what sends.
func TestWhoMayBeMailedTo(t *testing.T) {
	var sent []Email
	mailing := func(_ context.Context, to Email, _ Call) (Result, error) {
		sent = append(sent, to)
		return Result{}, nil
	}
	patterns, err := ParseMailPatterns("*@example.org,*@example.com")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Now: time.Now, Email: mailing, MailFrom: "belfry@example.org", MailTo: patterns})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to   Email
		says string // "" where it is sent
		from string
	}{
		"allowed":             {Email{To: []string{"a@example.org", "b@example.com"}}, "", "belfry@example.org"},
		"one of them not":     {Email{To: []string{"a@example.org", "b@example.net"}}, "b@example.net", ""},
		"of the own domain":   {Email{To: []string{"a@example.org"}, From: "nightly@EXAMPLE.org"}, "", "nightly@EXAMPLE.org"},
		"of another domain":   {Email{To: []string{"a@example.org"}, From: "chief@example.com"}, "--smtp-from", ""},
		"of a domain below":   {Email{To: []string{"a@example.org"}, From: "chief@sub.example.org"}, "--smtp-from", ""},
		"of a domain with it": {Email{To: []string{"a@example.org"}, From: "chief@notexample.org"}, "--smtp-from", ""},
	} {
		sent = nil
		_, err := s.Call(t.Context(), Spec{Email: &c.to}, Call{Tenant: "default"})
		var f *Failure
		switch {
		case c.says == "" && (err != nil || len(sent) != 1 || sent[0].From != c.from):
			t.Errorf("%s: %v, sent %v", name, err, sent)
		case c.says != "" && (!errors.As(err, &f) || f.Kind != KindRefused || !f.Permanent || !strings.Contains(f.Message, c.says) || len(sent) != 0):
			t.Errorf("%s: %v, sent %v", name, err, sent)
		}
	}
}

func TestAWorkerWithoutAMailServerSaysSo(t *testing.T) {
	s, err := New(Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	to := Spec{Email: &Email{To: []string{"a@example.org"}}}
	if err := s.Can(to); !errors.Is(err, ErrNotHere) || !strings.Contains(err.Error(), "BELFRY_SMTP_URL") {
		t.Error(err)
	}
	if _, err := s.Call(t.Context(), to, Call{}); !errors.Is(err, ErrNotHere) || s.Able().Email {
		t.Error(err)
	}
	nothing := func(context.Context, Email, Call) (Result, error) { return Result{}, nil }
	if _, err := New(Config{Now: time.Now, Email: nothing, MailFrom: "Belfry <a@example.org>"}); err == nil {
		t.Error("a sender's address that is none was taken")
	}
	if s, err = New(Config{Now: time.Now, Email: nothing, MailFrom: "a@example.org"}); err != nil || !s.Able().Email {
		t.Errorf("%v, able %+v", err, s.Able())
	}
}

func TestOnlyACallbacksPayloadIsAnEnding(t *testing.T) {
	for payload, want := range map[string]string{
		`{"event": "failed", "run": {"id": "report~1", "job": "report", "state": "dead"}}`:                                                               "report failed",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}}`:                                                            "report missed",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "missed": {"count": 1}}`:                                    "report missed 1 fire",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "missed": {"count": 6}}`:                                    "report missed 6 fires",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "missed": {"count": 100000}}`:                               "report missed 100000 fires or more",
		`{"event": "failed", "run": {"id": "report~1", "job": "report", "state": "dead"}, "count": 1, "jobs": {"report": 1}}`:                            "report failed",
		`{"event": "failed", "run": {"id": "report~1", "job": "report", "state": "dead"}, "count": 12, "jobs": {"report": 12}}`:                          "report failed 12 times",
		`{"event": "failed", "run": {"id": "report~1", "job": "report", "state": "dead"}, "count": 12, "jobs": {"report": 11, "other": 1}}`:              "12 runs failed",
		`{"event": "failed", "run": {"id": "report~1", "job": "report", "state": "dead"}, "count": 12, "jobs": {"report": 11}}`:                          "12 runs failed",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "missed": {"count": 6}, "count": 2, "jobs": {"report": 2}}`: "report missed fires 2 times",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "count": 3, "jobs": {"report": 2, "other": 1}}`:             "2 jobs missed fires",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "count": 300, "jobs": {"report": 2, "other": 1}}`:           "more than 2 jobs missed fires",
		`{"event": "missed", "run": {"id": "report~1", "job": "report", "state": "skipped"}, "count": 300}`:                                              "fires were missed 300 times",
		`{"event": "failed", "run": {"id": "report~1", "job": "report", "state": "dead"}, "count": 2, "jobs": [1]}`:                                      "",
		``:                    "",
		`null`:                "",
		`"failed"`:            "",
		`{"event": "failed"}`: "",
		`{"event": "failed", "run": {"id": "report~1", "state": "dead"}}`:                           "",
		`{"event": "failed", "run": "report~1"}`:                                                    "",
		`{"event": "fa\r\niled", "run": {"id": "report~1", "job": "report", "state": "dead"}}`:      "",
		`{"event": "failed", "run": {"id": "x", "job": "report\r\nX: y", "state": "dead"}}`:         "",
		`{"event": "failed", "run": {"id": "x", "job": "report", "state": "dead", "attempt": 1.5}}`: "",
	} {
		e, ok := Call{Payload: []byte(payload)}.Ending()
		if ok != (want != "") || ok && e.Title() != want {
			t.Errorf("%s: %q, %v; want %q", payload, e.Title(), ok, want)
		}
	}
}
