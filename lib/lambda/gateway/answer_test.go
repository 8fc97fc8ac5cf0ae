package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// What counts is what is sent: an answer that is not UTF-8 goes as base64, which is a third longer.
func TestAnAnswerIsMeasuredAsItIsSent(t *testing.T) {
	text := func(size int, end string) []byte { return append(bytes.Repeat([]byte("a"), size-len(end)), end...) }
	for name, c := range map[string]struct {
		body []byte
		fits bool
	}{
		"text":                       {text(5<<20, ""), true},
		"text with one bad byte":     {text(5<<20, "\xff"), false},
		"bytes that fit as base64":   {text(4<<20, "\xff"), true},
		"bytes just above, encoded":  {text(maxAnswer/4*3, "\xff"), false},
		"quotes, which are escaped":  {bytes.Repeat([]byte(`"`), maxAnswer/2), false},
		"control characters":         {bytes.Repeat([]byte{1}, maxAnswer/6+1), false},
		"control characters encoded": {append(bytes.Repeat([]byte{1}, maxAnswer/6), 0xff), true},
	} {
		r := &recorder{header: http.Header{}, bytes: true}
		_, _ = r.Write(c.body)
		got := r.answer()
		sent, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if fits := got.StatusCode == http.StatusOK; fits != c.fits || len(sent) > 6<<20 {
			t.Errorf("%s: status %d, %d bytes sent; want it to fit: %t", name, got.StatusCode, len(sent), c.fits)
		}
	}
}

// API Gateway decodes base64 for who asks for bytes before all else. Any other would get the base64, and not know.
func TestBytesAreForWhoAsksForThem(t *testing.T) {
	for accept, asks := range map[string]bool{"": false, "*/*": false, "text/plain, application/octet-stream": false, "application/octet-stream": true,
		"Application/Octet-Stream;q=0.9, */*": true} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		for body, text := range map[string]bool{"text é": true, "bytes \xff": false} {
			w := &recorder{header: http.Header{}, bytes: asksForBytes(r)}
			_, _ = w.Write([]byte(body))
			got := w.answer()
			want := events.APIGatewayProxyResponse{StatusCode: http.StatusOK, Body: body}
			switch {
			case text:
			case asks:
				want.Body, want.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(body)), true
			default:
				want.StatusCode, want.Body = http.StatusNotAcceptable, got.Body
			}
			if got.StatusCode != want.StatusCode || got.Body != want.Body || got.IsBase64Encoded != want.IsBase64Encoded {
				t.Errorf("%q of who accepts %q: %d, base64 %t, %s", body, accept, got.StatusCode, got.IsBase64Encoded, got.Body)
			}
		}
	}
}
