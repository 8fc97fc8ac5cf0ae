package target

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A failed call leaves in the log what was sent and what was answered, and nothing that is secret.
func TestAFailedCallTellsWhatWasSentAndAnswered(t *testing.T) {
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	var answer atomic.Pointer[http.HandlerFunc] // one that took its connection over goes on beside the next call
	spec := serve(t, func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) })
	host := strings.TrimPrefix(strings.TrimSuffix(spec.HTTP.URL, "/hook?token=hush"), "http://")
	spec.HTTP.URL = "http://user:" + hush + "@" + host + "/hook?token=" + hush + "&day=1&" + hush
	spec.HTTP.Headers = map[string]Value{"X-Team": Text("billing"), "X-Other": Secret("token"), "Authorization": Text("Bearer plain-" + hush), "X-Api-Key": Text("plain-" + hush)}
	spec.HTTP.Sign = &Sign{Secret: "signing"}
	s := newSet(t, func(c *Config) { c.Secrets = from(map[string]string{"token": hush, "signing": key}) })

	for name, c := range map[string]struct {
		payload string
		answer  http.HandlerFunc
		wants   []string
	}{
		"status": {`{"n":1}`, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Set-Cookie", "session="+hush)
			w.Header().Set("X-Echo", r.Header.Get("X-Other"))
			http.Error(w, "busy, "+hush+"\nsecond line", http.StatusServiceUnavailable)
		}, []string{"> POST http://" + host + "/hook?token=[hidden]&day=[hidden]&=[hidden]\n", "\n> Authorization: [hidden]\n", "\n> X-Api-Key: [hidden]\n", "\n> X-Other: [secret token]\n",
			"\n> X-Team: billing\n", "\n> Idempotency-Key: run-1\n", "\n> Webhook-Signature: [hidden]\n", "\n>\n> {\"n\":1}\n< HTTP/1.1 503 Service Unavailable\n",
			"\n< Retry-After: 7\n", "\n< Set-Cookie: [hidden]\n", "\n< X-Echo: [secret token]\n", "\n<\n< busy, [secret token]\n< second line\n"}},
		"long": {`"` + strings.Repeat("é", 3000) + `"`, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(strings.Repeat("z", 5000)))
		}, []string{"é\n> … 1907 bytes more were sent\n", strings.Repeat("z", 4096) + "\n< … 904 bytes more were answered\n"}},
		"secret in the payload": {`{"is":"` + hush + `"}`, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
			[]string{"> {\"is\":\"[secret token]\"}\n< HTTP/1.1 404 Not Found\n"}},
		"bytes": {"\xff\xfe", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			w.Write([]byte{0xff, 0, 1})
		}, []string{"> (2 bytes that are no text)\n", "< (3 bytes that are no text)\n"}},
		"redirect": {"", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://x:"+hush+"@example.com/to?token="+hush+"#"+hush)
			w.WriteHeader(http.StatusFound)
		}, []string{"< Location: https://example.com/to?token=[hidden]\n"}},
		"many headers": {"", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 60 {
				w.Header().Set("X-"+strings.Repeat("h", i+1), strings.Repeat("v", 200))
			}
			w.WriteHeader(http.StatusTeapot)
		}, []string{"< HTTP/1.1 418 I'm a teapot\n", " more headers\n"}},
		"broken": {`{"n":2}`, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		}, []string{"> POST http://", "> {\"n\":2}\n"}},
		"upgrade": {"", func(w http.ResponseWriter, _ *http.Request) {
			conn, out, _ := http.NewResponseController(w).Hijack()
			out.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
			out.Flush()
			conn.Close()
		}, []string{"< HTTP/1.1 101 Switching Protocols\n", "< Upgrade: x\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer.Store(&c.answer)
			var log strings.Builder
			call := testCall()
			call.Log, call.Payload = &log, []byte(c.payload)
			if _, err := s.Call(t.Context(), spec, call); err == nil {
				t.Fatal("it did not fail")
			}
			for _, want := range c.wants {
				if !strings.Contains(log.String(), want) {
					t.Errorf("it lacks %.100q: %.3000s", want, log.String())
				}
			}
			for _, secret := range []string{hush, "hush", key, "v1,", "user"} {
				if strings.Contains(log.String(), secret) {
					t.Errorf("it tells %q: %s", secret, log.String())
				}
			}
			for line := range strings.Lines(log.String()) {
				if line[0] != '>' && line[0] != '<' {
					t.Errorf("a line without its mark: %q", line)
				}
			}
		})
	}
}

// An attempt that succeeds writes nothing, so that nothing more is kept of it; one that sent nothing has nothing to tell.
func TestACallThatSucceedsOrSendsNothingTellsNothing(t *testing.T) {
	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("done")) })
	var log strings.Builder
	call := testCall()
	call.Log = &log
	s := newSet(t, nil)
	if _, err := s.Call(t.Context(), spec, call); err != nil || log.Len() > 0 {
		t.Errorf("%v, %q", err, log.String())
	}
	nobody := Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1/"}}
	if _, err := s.Call(t.Context(), nobody, call); err == nil || log.Len() > 0 {
		t.Errorf("nobody listens: %v, %q", err, log.String())
	}
}
