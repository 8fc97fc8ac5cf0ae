package target

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a failed call leaves in the attempt's log: what was sent and what was answered, as curl -v shows it. Of a body, and of all headers
// together, this much.
const maxTold = 4 << 10

// hidden stands where a value is not told.
const hidden = "[hidden]"

// tellSent writes what was sent to the attempt's log.
func (s *Set) tellSent(h HTTP, call Call, known revealed) {
	headers, err := s.headers(h, call, known)
	if err != nil {
		return // nothing was sent
	}
	for name := range headers {
		if value, ok := h.Headers[name]; ok && value.Secret != "" {
			headers[name] = Secret(value.Secret).String()
		}
	}
	t := told{mark: "> ", veil: known.veil}
	t.line(h.MethodOrDefault() + " " + urlWithoutValues(h.URL))
	t.headers(headers)
	t.body([]byte(known.veil.hide(string(call.Payload))), "sent")
	_, _ = call.Log.Write(t.out.Bytes())
}

// tellAnswer writes what was answered to the attempt's log. The body has no secrets any more.
func (s *Set) tellAnswer(call Call, known revealed, response *http.Response, body []byte) {
	headers := map[string]string{}
	for name, values := range response.Header {
		headers[name] = strings.Join(values, ", ")
	}
	if at := response.Header.Get("Location"); at != "" {
		headers["Location"] = urlWithoutValues(at)
	}
	t := told{mark: "< ", veil: known.veil}
	t.line(response.Proto + " " + statusLine(response.StatusCode))
	t.headers(headers)
	t.body(body, "answered")
	_, _ = call.Log.Write(t.out.Bytes())
}

// told is one side of an exchange, a mark in front of each line.
type told struct {
	out  bytes.Buffer
	mark string
	veil *veil
}

// line adds a line, which holds no secret and no control characters then.
func (t *told) line(text string) {
	t.out.WriteString(strings.TrimRight(t.mark+oneLine(t.veil.hide(text), maxTold), " ") + "\n")
}

func (t *told) headers(headers map[string]string) {
	begun := t.out.Len()
	for i, name := range slices.Sorted(maps.Keys(headers)) {
		if t.out.Len()-begun > maxTold {
			t.line(fmt.Sprintf("… and %d more headers", len(headers)-i))
			return
		}
		value := headers[name]
		if isTelling(name) && !strings.HasPrefix(value, "[secret ") {
			value = hidden
		}
		t.line(name + ": " + value)
	}
}

func (t *told) body(body []byte, done string) {
	if len(body) == 0 {
		return
	}
	t.line("")
	if !utf8.Valid(body) {
		t.line(fmt.Sprintf("(%d bytes that are no text)", len(body)))
		return
	}
	shown := body
	if len(body) > maxTold {
		shown = WholeText(body[:maxTold])
	}
	for line := range bytes.Lines(shown) {
		t.out.WriteString(t.mark)
		t.out.Write(bytes.TrimSuffix(line, []byte("\n")))
		t.out.WriteByte('\n')
	}
	if more := len(body) - len(shown); more > 0 {
		t.line(fmt.Sprintf("… %d bytes more were %s", more, done))
	}
}

// isTelling says of a header's name that its value is one that lets others in, wherever it comes from.
func isTelling(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" {
		return false
	}
	return slices.ContainsFunc([]string{"auth", "cookie", "token", "secret", "key", "password", "passwd", "signature", "session", "credential"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// urlWithoutValues is a URL whose query has its names alone, and which names no user.
func urlWithoutValues(text string) string {
	at, err := url.Parse(text)
	if err != nil {
		return "(unreadable URL)"
	}
	shown := withoutSecrets(text)
	if at.RawQuery == "" {
		return shown
	}
	var names []string
	for _, pair := range strings.FieldsFunc(at.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, has := strings.Cut(pair, "=")
		if !has {
			name = "" // what stands alone may be the value itself
		}
		names = append(names, name+"="+hidden)
	}
	return shown + "?" + strings.Join(names, "&")
}
