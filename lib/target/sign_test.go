package target

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The vector is that of the documentation of Standard Webhooks' own libraries.
func TestSignatureIsThatOfTheStandard(t *testing.T) {
	key, ok := signingKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if !ok {
		t.Fatal("the standard's key is refused")
	}
	got := signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if got != "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("got %s", got)
	}
}

func TestSigningKeysAreOfTheStandardsForm(t *testing.T) {
	for text, want := range map[string]bool{
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": true,
		"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw":       true,
		"whsec_":                                 false,
		"":                                       false,
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS":  false, // no base64
		"whsec_" + strings.Repeat("AAAA", 7):     false, // 21 bytes
		"whsec_" + strings.Repeat("AAAA", 22):    false, // 66 bytes
	} {
		if _, ok := signingKey(text); ok != want {
			t.Errorf("%q: taken %t, want %t", text, ok, want)
		}
	}
}

func TestHTTPCallsAreSigned(t *testing.T) {
	keys := map[string]string{"new": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "old": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "bad": "hush-hush"}
	var got http.Header
	var body []byte
	spec := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
	})
	later := noon.Add(90 * time.Second)
	s := newSet(t, func(c *Config) { c.Secrets, c.Now = from(keys), func() time.Time { return later } })
	call := testCall()
	call.Run = "acme.report~1"
	for _, previous := range []string{"", "old"} {
		spec.HTTP.Sign = &Sign{Secret: "new", Previous: previous}
		if _, err := s.Call(t.Context(), spec, call); err != nil {
			t.Fatal(err)
		}
		if got.Get("webhook-id") != "acme%2Ereport~1" || got.Get("webhook-timestamp") != "1795262490" {
			t.Errorf("ID %q, timestamp %q; want the run without dots and the attempt's time", got.Get("webhook-id"), got.Get("webhook-timestamp"))
		}
		var want []string
		for _, name := range []string{"new", previous} {
			if key, ok := signingKey(keys[name]); ok {
				want = append(want, "v1,"+signature(key, "acme%2Ereport~1", "1795262490", body))
			}
		}
		if signed := got.Get("webhook-signature"); signed != strings.Join(want, " ") || len(body) == 0 {
			t.Errorf("signature %q over %s, want %q", signed, body, want)
		}
	}
	got = nil
	spec.HTTP.Sign = &Sign{Secret: "bad"}
	_, err := s.Call(t.Context(), spec, call)
	f := wantFailure(t, err, KindSecret, false)
	if got != nil || strings.Contains(f.Message, "hush") || !strings.Contains(f.Error(), "secret: bad is no signing key") {
		t.Errorf("with a bad key: %q, and this arrived: %v", f.Message, got)
	}
}

func from(values map[string]string) Secrets { return fromErr(values, errors.New("not there")) }
