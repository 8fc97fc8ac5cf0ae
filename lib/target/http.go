package target

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// sharedTransport keeps connections. On a kept connection that the server closes, it may send a request a second time by
// itself; such a request carries an Idempotency-Key, and the run may start twice anyway.
func sharedTransport(cfg Config) *http.Transport {
	t := baseTransport(cfg)
	t.ForceAttemptHTTP2 = true
	t.MaxIdleConns = 256
	t.MaxIdleConnsPerHost = 16
	t.IdleConnTimeout = 90 * time.Second
	// A server that reads nothing more would hold every later request on its connection, and what closes them.
	t.HTTP2 = &http.HTTP2Config{WriteByteTimeout: connectTimeout}
	return t
}

// freshTransport opens a connection for each request and sends it once. net/http resends only what broke on a connection
// that was used before, and HTTP/2 also what the server says it did not process: neither can come to pass here.
func freshTransport(cfg Config) *http.Transport {
	t := baseTransport(cfg)
	t.DisableKeepAlives = true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// baseTransport leaves Proxy unset: a proxy named by the environment would be connected to in place of the target, and the
// address policy would judge the wrong address.
func baseTransport(cfg Config) *http.Transport {
	dialer := cfg.Addresses.dialer()
	allowed := dialer.Control
	dialer.Control = func(network, address string, socket syscall.RawConn) error {
		if err := allowed(network, address, socket); err != nil {
			return err
		}
		return roomFor(socket)
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxAnswerHeaders,
	}
}

const maxAnswerHeaders = 64 << 10

// plainly says why a call broke, without the words in which net/http speaks of itself.
func plainly(err error) string {
	text := err.Error()
	if strings.Contains(text, "server response headers exceeded") || strings.Contains(text, "response header list larger than") {
		return fmt.Sprintf("the headers of the answer are larger than %d KiB", maxAnswerHeaders>>10)
	}
	return strings.TrimPrefix(text, "net/http: HTTP/1.x transport connection broken: ")
}

// callHTTP makes one request. It ends at the latest a grace after ctx, whatever the server does and the transport makes of it. Where it fails and
// something may have been sent, the log has that, and the answer.
func (s *Set) callHTTP(ctx context.Context, h HTTP, call Call, known revealed) (Result, error) {
	var result Result
	var err error
	at := new(progress)
	if !bounded(ctx, s.cfg.Grace, func() { result, err = s.exchange(ctx, h, call, known, at) }) {
		if at.sent() {
			s.tellSent(h, call, known)
		}
		return Result{}, at.ended(ctx)
	}
	return result, err
}

// progress is how far a request has come: what it is at.
type progress struct{ phase atomic.Int32 }

// The phases, in their order. Up to the handshake nothing of the request was sent.
const (
	resolving = iota
	connecting
	securing
	sending
	waiting
	receiving
)

var phases = [...]string{"looking up the name", "connecting", "in the TLS handshake", "sending the request", "waiting for the answer", "reading the answer"}

// reach notes a phase. It never goes back: the transport may go on dialling for others while a kept connection carries this request.
func (p *progress) reach(phase int32) {
	for {
		at := p.phase.Load()
		if at >= phase || p.phase.CompareAndSwap(at, phase) {
			return
		}
	}
}

// sent tells whether the target may have got anything of the request.
func (p *progress) sent() bool { return p.phase.Load() >= sending }

// ended is the error of a call whose context is over. Before anything was sent neither a timer nor
// a cancellation leaves a doubt.
func (p *progress) ended(ctx context.Context) error {
	phase := p.phase.Load()
	err := ended(ctx)
	var f *Failure
	switch {
	case errors.As(err, &f):
		f.Message += " while " + phases[phase]
		if phase < sending {
			f.Kind = KindConnect
		}
	case phase < sending:
		return unsent(ctx)
	}
	return err
}

// follow has the transport tell how far the request has come.
func (p *progress) follow(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart:         func(string, string) { p.reach(connecting) },
		TLSHandshakeStart:    func() { p.reach(securing) },
		GotConn:              func(httptrace.GotConnInfo) { p.reach(sending) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { p.reach(waiting) },
		GotFirstResponseByte: func() { p.reach(receiving) },
	})
}

// exchange speaks to the transport itself: no cookies, no redirects, and no error text with the URL's query in it.
func (s *Set) exchange(ctx context.Context, h HTTP, call Call, known revealed, at *progress) (Result, error) {
	headers, err := s.headers(h, call, known)
	if err != nil {
		return Result{}, err
	}
	request, err := s.request(at.follow(ctx), h, call, headers)
	if err != nil {
		return Result{}, failed(KindConnect, err, "make the request: %v", err).permanent()
	}
	transport := s.shared
	if call.AtMostOnce {
		transport = s.fresh
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		err = brokenCall(ctx, err, at, known.veil)
		if errors.Is(err, ErrShort) {
			s.shared.CloseIdleConnections() // which nobody needs as much
		}
		if at.sent() {
			s.tellSent(h, call, known)
		}
		return Result{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusSwitchingProtocols {
		// Its body is the connection itself. A read of it would end with the connection only, not with ctx.
		s.tellSent(h, call, known)
		s.tellAnswer(call, known, response, nil)
		return Result{}, s.refusedBy(h, response, nil, known.veil)
	}

	body, err := readAnswer(response.Body, captureOf(ctx, call), known.veil)
	if err != nil || body.truncated || !isSuccess(response.StatusCode) {
		s.tellSent(h, call, known)
		s.tellAnswer(call, known, response, body.kept)
	}
	if failure := s.refusedBy(h, response, body.kept, known.veil); failure != nil {
		// The status is the verdict, even where the rest of the answer was lost.
		return Result{}, failure
	}
	if err != nil {
		return Result{}, brokenCall(ctx, fmt.Errorf("read the answer: %w", err), at, known.veil)
	}
	if body.truncated {
		return Result{}, tooLarge("the answer", call)
	}
	return Result{Body: body.kept, ContentType: oneLine(known.veil.hide(response.Header.Get("Content-Type")), 200)}, nil
}

// readAnswer keeps the beginning of an answer, without what it repeats of secrets. It reads a little more than it keeps,
// since what replaces a secret may be shorter.
func readAnswer(from io.Reader, body capture, v *veil) (capture, error) {
	limit := int64(body.most + 1)
	if v != nil {
		limit += int64(v.longest)
	}
	out := v.over(&body)
	n, err := io.Copy(out, io.LimitReader(from, limit))
	cut := n == limit
	out.close(cut)
	body.truncated = body.truncated || cut
	return body, err
}

// headers are all that the call sends, by name: the job's own, then Belfry's, then the signature over them.
func (s *Set) headers(h HTTP, call Call, known revealed) (map[string]string, error) {
	headers, err := known.texts(h.Headers, maxHeaderBytes, isFieldValue, "visible characters, spaces and tabs, with none of those at its ends")
	if err != nil {
		return nil, err
	}
	for _, fact := range call.Facts() {
		// Only a trace of the job's own can stand there: what the target does belongs to the run's, where there is one.
		maps.DeleteFunc(headers, func(name, _ string) bool { return http.CanonicalHeaderKey(name) == fact.Header })
		headers[fact.Header] = fact.Value
	}
	if h.Sign != nil {
		return headers, h.Sign.add(headers, call, s.cfg.Now(), known)
	}
	return headers, nil
}

func (s *Set) request(ctx context.Context, h HTTP, call Call, headers map[string]string) (*http.Request, error) {
	var body io.Reader
	if len(call.Payload) > 0 {
		body = bytes.NewReader(call.Payload)
	}
	request, err := http.NewRequestWithContext(ctx, h.MethodOrDefault(), h.URL, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", s.cfg.UserAgent)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	if call.AtMostOnce {
		request.GetBody = nil // with no way to send the body again, nobody will
	}
	return request, nil
}

// brokenCall tells what is known when no answer came: whether the request can have reached the target.
func brokenCall(ctx context.Context, err error, at *progress, v *veil) error {
	var refused *errRefused
	switch {
	case errors.As(err, &refused):
		return failed(KindRefused, err, "%v", refused).permanent()
	case ctx.Err() != nil:
		return at.ended(ctx)
	case at.sent():
		return failed(KindLost, err, "%s", v.hide(plainly(err)))
	case Short(err) != nil:
		return Short(err)
	default:
		return failed(KindConnect, err, "%s", v.hide(err.Error()))
	}
}

// refusedBy is nil for 2xx. An answer's beginning becomes part of the message, because that is where targets say why.
func (s *Set) refusedBy(h HTTP, response *http.Response, body []byte, v *veil) error {
	status := response.StatusCode
	if isSuccess(status) {
		return nil
	}
	var f *Failure
	if status >= 300 && status <= 399 {
		where := ""
		if at, err := response.Location(); err == nil {
			where = " to " + v.hide(withoutSecrets(at.String()))
		}
		f = failed(KindRedirect, nil, "answered %s%s, and Belfry follows no redirects: set http.url to the final address", statusLine(status), where)
	} else {
		f = failed(KindHTTPStatus, nil, statusSaid+"%s", statusLine(status))
		if text := oneLine(string(body), 300); text != "" {
			f.Message += ": " + text
		}
	}
	f.Permanent = isPermanent(h, status)
	if !f.Permanent {
		f.RetryAfter = retryAfter(response.Header.Get("Retry-After"), s.cfg.Now())
	}
	return f
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

func statusLine(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// isPermanent says whether another attempt is no use. The retried of the 4xx are those that speak of the moment and not of
// the request: 408 and 429; 425, early data; and 409, with which a target says that an earlier attempt under the same
// Idempotency-Key is still being worked on.
func isPermanent(h HTTP, status int) bool {
	switch {
	case slices.Contains(h.PermanentStatus, status):
		return true
	case slices.Contains(h.RetryStatus, status):
		return false
	case status >= 500:
		return false
	default:
		return !slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests}, status)
	}
}

// retryAfter reads seconds or a date (RFC 9110, 10.2.3); what is neither asks for nothing.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds > int(MaxRetryAfter/time.Second) {
			return MaxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return boundedWait(at.Sub(now))
}
