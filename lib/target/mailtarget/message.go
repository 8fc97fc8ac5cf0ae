package mailtarget

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// message is a mail that is finished but for the dots that SMTP doubles.
type message struct {
	id   string // its Message-ID
	text []byte
}

// compose writes the mail of an attempt. to.From is set.
func (s *Sender) compose(to target.Email, call target.Call) message {
	m := message{id: messageID(to.From, call)}
	subject, body := "Run of "+call.Job, plainText(call.Payload)
	if e, ok := call.Ending(); ok {
		subject, body = e.Title(), s.tell(e)
		if e.Count > 1 {
			body = s.tellAll(e)
		}
	}
	if to.Subject != "" {
		subject = to.Subject
	}
	var out bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&out, "%s: %s\r\n", name, value) }
	header("Date", s.now().UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	header("From", to.From)
	header("To", strings.Join(to.To, ",\r\n "))
	header("Subject", encoded(subject))
	header("Message-ID", m.id)
	header("Auto-Submitted", "auto-generated") // so that no holiday reply comes back
	for _, fact := range call.Facts() {
		if strings.HasPrefix(fact.Header, "Belfry-") {
			header(fact.Header, fact.Value)
		}
	}
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	out.WriteString("\r\n")
	encode := quotedprintable.NewWriter(&out)
	_, _ = encode.Write([]byte(strings.ToValidUTF8(body, "\ufffd"))) // a buffer takes everything
	_ = encode.Close()
	m.text = out.Bytes()
	return m
}

// messageID is the same on every attempt of a run, so that what comes twice is known. It tells nobody the tenant's name.
func messageID(from string, call target.Call) string {
	sum := sha256.Sum256([]byte(call.Tenant + "/" + call.Run))
	return "<belfry." + hex.EncodeToString(sum[:16]) + "@" + target.DomainOf(from) + ">"
}

// encoded is text as a header has it: printable ASCII as it is, and all else as encoded words (RFC 2047), each on a line of its own.
func encoded(text string) string {
	foreign := func(r rune) bool { return r < ' ' || r > '~' }
	if !strings.ContainsFunc(text, foreign) && !strings.Contains(text, "=?") {
		return text
	}
	const most = 42 // bytes of a word, so that a line is below 78
	var words []string
	for text != "" {
		n := min(len(text), most)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(text[:n]))+"?=")
		text = text[n:]
	}
	return strings.Join(words, "\r\n ")
}

// tell is a callback's payload for people.
func (s *Sender) tell(e target.Ending) string {
	var out strings.Builder
	r := e.Run
	switch e.Event {
	case "failed":
		fmt.Fprintf(&out, "A run of the job %s was given up.\n\n", r.Job)
	case "recovered":
		fmt.Fprintf(&out, "The job %s works again: a run has succeeded after one that was given up.\n\n", r.Job)
	case "succeeded":
		fmt.Fprintf(&out, "A run of the job %s has succeeded.\n\n", r.Job)
	case "missed":
		fmt.Fprintf(&out, "Fires of the job %s were missed, and its catch-up policy does not run them.\n\n", r.Job)
	default:
		fmt.Fprintf(&out, "%s\n\n", e.Title())
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%-10s%s\n", name, strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n          "))
		}
	}
	line("Run", r.ID)
	line("Job", r.Job)
	line("State", r.State)
	if m := e.Missed; m != nil {
		line("Missed", e.MissedFires())
		line("First due", instant(m.First))
		line("Last due", instant(m.Last))
	} else {
		line("Due", instant(r.NominalTime))
	}
	line("Started", instant(r.StartedAt))
	line("Ended", instant(r.EndedAt))
	if r.Attempt > 0 {
		line("Attempts", strconv.Itoa(r.Attempt))
	}
	line("Reason", r.Reason)
	line("Error", r.Error)
	switch {
	case r.ResultLeftOut:
		line("Result", "larger than a mail should be; see the run")
	case len(r.Result) > 0 && r.ResultCut:
		out.WriteString("\nResult (its beginning):\n" + plainText(r.Result))
	case len(r.Result) > 0:
		out.WriteString("\nResult:\n" + plainText(r.Result))
	}
	if s.console != "" {
		out.WriteString("\n" + s.console + "/runs/" + url.PathEscape(r.ID) + "\n")
	}
	return out.String()
}

// tellAll is a callback's payload for people, where it tells of several.
func (s *Sender) tellAll(e target.Ending) string {
	var out strings.Builder
	within := fmt.Sprintf("from %s to %s", instant(e.Window.From), instant(e.Window.Until))
	switch e.Event {
	case "failed":
		fmt.Fprintf(&out, "%d runs were given up %s.\n\n", e.Count, within)
	case "missed":
		fmt.Fprintf(&out, "Fires were missed that the catch-up policies of their jobs do not run. This was found %s.\n\n", within)
	default:
		fmt.Fprintf(&out, "%s %s.\n\n", e.Title(), within)
	}
	left := e.Count
	for _, name := range slices.SortedFunc(maps.Keys(e.Jobs), func(a, b string) int { return cmp.Or(cmp.Compare(e.Jobs[b], e.Jobs[a]), cmp.Compare(a, b)) }) {
		fmt.Fprintf(&out, "%6d  %s\n", e.Jobs[name], name)
		left -= e.Jobs[name]
	}
	if left > 0 {
		fmt.Fprintf(&out, "%6d  of other jobs\n", left)
	}
	line := func(text ...string) {
		text = slices.DeleteFunc(text, func(t string) bool { return t == "" })
		if len(text) > 0 {
			out.WriteString("  " + strings.ReplaceAll(strings.TrimSpace(strings.Join(text, ", ")), "\n", "\n  ") + "\n")
		}
	}
	for _, r := range e.Runs {
		fmt.Fprintf(&out, "\n%s\n", r.ID)
		if m := r.Missed; m != nil {
			line(m.Fires(), "due from "+instant(m.First)+" to "+instant(m.Last))
		} else {
			attempts := ""
			if r.Attempt > 1 {
				attempts = fmt.Sprintf("after %d attempts", r.Attempt)
			}
			line(r.State+" at "+instant(r.EndedAt), attempts)
		}
		line(r.Reason)
		line(r.Error)
		if s.console != "" {
			line(s.console + "/runs/" + url.PathEscape(r.ID))
		}
	}
	if more := e.Count - len(e.Runs); more > 0 {
		fmt.Fprintf(&out, "\nand %d more.\n", more)
	}
	return out.String()
}

func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// plainText is JSON for people: text as it is, all else indented, with all the digits of its numbers.
func plainText(payload []byte) string {
	payload = bytes.TrimSpace(payload)
	var text string
	var indented bytes.Buffer
	switch {
	case len(payload) == 0:
		text = "The run has no payload."
	case payload[0] == '"' && json.Unmarshal(payload, &text) == nil:
	case json.Indent(&indented, payload, "", "  ") == nil:
		text = indented.String()
	default:
		text = string(payload)
	}
	return strings.TrimRight(text, "\n") + "\n"
}
