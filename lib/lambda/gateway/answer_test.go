package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
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
		r := &recorder{header: http.Header{}}
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
