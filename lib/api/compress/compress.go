// Package compress has a server answer in gzip. It stands apart from package api so that functions do not link it: API Gateway compresses by
// itself what they answer.
package compress

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// Smallest is from how many bytes on an answer is compressed: below it the headers weigh more than what is saved.
const Smallest = 1 << 10

// types are the media types that become smaller. A backup is compressed already.
var types = []string{"application/json", "application/problem+json", "application/openapi+json", "text/plain"}

// Answers has a handler answer in gzip, where the client takes it and the request only reads. What a handler compresses itself stays as it is.
// Answers to writes go as they are: most are small, and whoever writes much waits for each.
func Answers(handler http.Handler, reads func(*http.Request) bool) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(Smallest), gzhttp.EnableZstd(false), gzhttp.ContentTypes(types))
	if err != nil {
		panic("compress: the options: " + err.Error()) // they are fixed, and a test makes one
	}
	packed := wrap(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads(r) {
			packed.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
