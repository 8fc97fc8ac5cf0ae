package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// noneMatch is the header by which a client names the answer that it has.
const noneMatch = "If-None-Match"

// tagged gives answers a weak ETag, by what they say, and spares a client the body that it has already. It costs the server the same; what it
// saves is what is sent.
func tagged(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	held := &heldAnswer{ResponseWriter: w, status: http.StatusOK}
	next(humago.NewContext(ctx.Operation(), r.WithContext(ctx.Context()), held))
	if held.status == http.StatusOK {
		tag := tagOf(held.body.Bytes())
		w.Header().Set("ETag", tag)
		if known(r.Header.Values(noneMatch), tag) {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(held.status)
	_, _ = w.Write(held.body.Bytes()) // the connection may be gone; there is nobody else to tell
}

// heldAnswer keeps an answer until it is known whether it is to be sent.
type heldAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) WriteHeader(status int)      { h.status = status }
func (h *heldAnswer) Write(p []byte) (int, error) { return h.body.Write(p) }

// tagOf is a hash that nobody can find two bodies for: what has changed is not to look the same, whoever changed it.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// known tells whether a client has the answer of a tag. The comparison is the weak one.
func known(given []string, tag string) bool {
	for _, line := range given {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
