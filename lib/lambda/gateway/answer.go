package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/api"
)

// maxAnswer is how much a function can answer, as Lambda counts it: the whole answer, in JSON. The rest of 6 MB is for its headers.
const maxAnswer = 6<<20 - 64<<10

// recorder takes an answer up to its bound.
type recorder struct {
	header http.Header
	status int
	body   []byte
	over   bool
	bytes  bool // API Gateway passes on what is no text as it is
}

// asksForBytes tells whether API Gateway decodes base64 before it answers a request. A REST API goes by the first media type that the request accepts, and by those
// of the template, BinaryMediaTypes; whoever asks for another gets the base64 itself, and nothing tells him.
func asksForBytes(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	first, _, _ = strings.Cut(first, ";")
	return strings.EqualFold(strings.TrimSpace(first), api.Bytes)
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.over = r.over || len(r.body)+len(p) > maxAnswer; !r.over {
		r.body = append(r.body, p...)
	}
	return len(p), nil
}

// answer is what the function gives back.
func (r *recorder) answer() events.APIGatewayProxyResponse {
	body, encoded := string(r.body), false
	if !utf8.Valid(r.body) {
		if !r.bytes {
			refused := &recorder{header: http.Header{}}
			api.NoText(refused)
			return refused.answer()
		}
		body, encoded = base64.StdEncoding.EncodeToString(r.body), true
	}
	if r.over || len(body) > maxAnswer/8 && sizeOf([]byte(body)) > maxAnswer {
		refused := &recorder{header: http.Header{}}
		api.TooLarge(refused, maxAnswer)
		return refused.answer()
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return events.APIGatewayProxyResponse{StatusCode: r.status, MultiValueHeaders: r.header, Body: body, IsBase64Encoded: encoded}
}

// sizeOf is how long a text is in JSON, where a quote takes two bytes, and some characters six.
func sizeOf(text []byte) int {
	in, err := json.Marshal(string(text))
	if err != nil {
		return maxAnswer + 1
	}
	return len(in)
}
