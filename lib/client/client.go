package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// DefaultAddress is where `belfry dev` listens.
const DefaultAddress = "http://127.0.0.1:7340"

// Config says which server is called, and how. Fields without a default are required.
type Config struct {
	Address string // default: DefaultAddress
	Token   string // sent as "Authorization: Bearer"; default: none. Use https beyond this machine: it is readable on http

	// Authorize adds to each try, before it is sent, what shows who calls where that is no token: a signature, the key of a gateway.
	// body is the request's, and stays as it is. Its error ends the call: nothing was sent. Excludes Token; default: none.
	Authorize func(req *http.Request, body []byte) error

	RootCAs *x509.CertPool // whose certificates a server may show; default: those the host trusts. Excludes HTTP
	HTTP    *http.Client   // default: one with a timeout of a minute for each try, which follows no redirection
	Tries   int            // of a call that may be repeated; default 4, 1 for no repetition
	NewKey  func() string  // idempotency keys for triggers that bring none, such as rand.Text of crypto/rand; required
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	cfg  Config
	base *url.URL
}

// New checks the address; it calls nobody.
func New(cfg Config) (*Client, error) {
	if cfg.Address == "" {
		cfg.Address = DefaultAddress
	}
	base, err := url.Parse(cfg.Address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("address %q: want a URL such as %s", cfg.Address, DefaultAddress)
	}
	if base.User != nil { // which errors and logs would show, and servers do not look at
		return nil, fmt.Errorf("address %s: want it without user and password; a token says who calls", base.Redacted())
	}
	if strings.ContainsFunc(cfg.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("token: want one word of ASCII, as \"belfry token create\" prints it")
	}
	if cfg.Token != "" && cfg.Authorize != nil {
		return nil, errors.New("client: Token and Authorize exclude each other")
	}
	switch {
	case cfg.HTTP == nil:
		cfg.HTTP = httpClient(cfg.RootCAs)
	case cfg.RootCAs != nil:
		return nil, errors.New("client: RootCAs is for the default HTTP client; give HTTP its own")
	}
	if cfg.Tries == 0 {
		cfg.Tries = 4
	}
	if cfg.NewKey == nil {
		return nil, errors.New("client: NewKey is required")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return &Client{cfg: cfg, base: base}, nil
}

// httpClient follows no redirection: the API has none, and a token is for the server that it was given for.
func httpClient(roots *x509.CertPool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns // there is but one, and callers beyond the usual two would dial for each call
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Timeout: time.Minute, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Address is the server's, as configured.
func (c *Client) Address() string { return c.base.String() }

// Error is a refusal: a problem document of the server.
type Error struct {
	wire.Problem
	RetryAfter time.Duration // when to try again, 0 where the server named no time

	// Gateway is what Amazon API Gateway calls its refusal, such as "AccessDeniedException", where it answered in the server's
	// place; else "". Message is what it says then.
	Gateway, Message string
	At               time.Time // by the clock of whoever answered; zero where it does not tell
}

func (e *Error) Error() string { return e.Problem.Error() }

// HasCode tells whether err is a refusal with this code.
func HasCode(err error, code string) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == code
}

// Unreachable says that no answer came. Whether the request was carried out is not known.
type Unreachable struct {
	Address string
	Err     error
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("no answer from Belfry at %s: %v", u.Address, u.Err)
}

func (u *Unreachable) Unwrap() error { return u.Err }

// call is one request.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any    // nil: none
	media        string // of the body; "": JSON
	repeatable   bool   // doing it twice is doing it once
}

// Bounds of answers and waits. A server sends less than maxAnswer: a page of a list has 8 MB, and a batch of 16 MB is answered with
// twice as much at the worst, where each of its characters is one that JSON writes in six bytes instead of three.
const (
	maxAnswer   = 64 << 20
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// do sends the call until it is answered for good, and gives the headers of that answer. into is filled from its JSON; a
// *[]byte takes the body as it is.
func (c *Client) do(ctx context.Context, r call, into any) (http.Header, int, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = wire.Encode(r.body); err != nil {
			return nil, 0, err
		}
	}
	wait := firstWait
	for try := 1; ; try++ {
		header, status, err := c.once(ctx, r, body, into)
		if err == nil {
			return header, status, nil
		}
		// What an earlier try may have deleted is gone, as was wanted.
		if r.method == http.MethodDelete && try > 1 && status == http.StatusNotFound {
			return header, http.StatusNoContent, nil
		}
		pause, again := c.again(r, err)
		if !again || try >= c.cfg.Tries || ctx.Err() != nil {
			return header, status, err
		}
		if pause < wait {
			pause = wait
		}
		timer := time.NewTimer(min(pause, longestWait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return header, status, err
		}
		wait *= 2
	}
}

// again tells whether a failed call may be sent once more, and how long to wait at least.
func (c *Client) again(r call, err error) (time.Duration, bool) {
	var refused *Error
	if !errors.As(err, &refused) {
		return 0, r.repeatable && !errors.As(err, new(unsent))
	}
	switch {
	case refused.Gateway == gatewayBusy:
		return refused.RetryAfter, true // it passed nothing on
	case refused.Code == "busy" || refused.Code == "throttled" || refused.Code == "rate_limited":
		return refused.RetryAfter, true // nothing was done
	case refused.Status == http.StatusServiceUnavailable || refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout:
		return refused.RetryAfter, r.repeatable && refused.Code != "not_ready"
	}
	return 0, false
}

func (c *Client) once(ctx context.Context, r call, body []byte, into any) (http.Header, int, error) {
	given := r.header.Clone()
	if given == nil {
		given = http.Header{}
	}
	if body != nil {
		given.Set("Content-Type", cmp.Or(r.media, "application/json"))
	}
	if _, raw := into.(*[]byte); raw {
		given.Set("Accept", "application/octet-stream") // API Gateway passes on what is no text where that is asked for
	}
	answer, err := c.Send(ctx, r.method, r.path, r.query.Encode(), given, body)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, &Unreachable{Address: c.Address(), Err: err}
	}
	if len(text) > maxAnswer {
		return nil, 0, fmt.Errorf("%s %s: the answer is larger than %d MB", r.method, r.path, maxAnswer>>20)
	}
	if answer.StatusCode >= 300 {
		return answer.Header, answer.StatusCode, Refused(answer, text)
	}
	switch into := into.(type) {
	case nil:
	case *[]byte:
		*into = text
	default:
		if err := json.Unmarshal(text, into); err != nil {
			return nil, 0, fmt.Errorf("%s %s: the answer is not Belfry's: %w", r.method, r.path, err)
		}
	}
	return answer.Header, answer.StatusCode, nil
}

// Send sends one request, once, and gives its answer whatever the status; the caller closes the body. It is for programs that pass
// requests on. path is below the server's address and escaped, as url.URL.EscapedPath gives it; query is as it stands in a URL. The
// errors are *Unreachable, and those of Config.Authorize.
func (c *Client) Send(ctx context.Context, method, path, query string, header http.Header, body []byte) (*http.Response, error) {
	at := *c.base
	at.RawPath = at.EscapedPath() + path
	whole, err := url.PathUnescape(at.RawPath)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	at.Path, at.RawQuery = whole, query
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	// What stands between changes this one, so that nobody is to sign it.
	req.Header.Del("Accept-Encoding")
	if err := c.authorize(req, body); err != nil {
		return nil, err
	}
	if encodings := header["Accept-Encoding"]; encodings != nil {
		req.Header["Accept-Encoding"] = encodings
	}
	answer, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return nil, &Unreachable{Address: c.Address(), Err: reason(err)}
	}
	return answer, nil
}

// reason is an error of the HTTP client without the address and method that it repeats.
func reason(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// Refused reads an answer that is a refusal, or no answer of Belfry's, whose body is text.
func Refused(answer *http.Response, text []byte) *Error {
	e := &Error{}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(text, &e.Problem) // what it does not fill in is filled in below
	}
	e.Gateway, e.Message = gatewayRefusal(answer.Header, text)
	e.At, _ = http.ParseTime(answer.Header.Get("Date"))
	switch {
	case e.Code != "" && e.Gateway != "": // a stack has its gateway answer as the server does
		e.Message = e.Detail
	case e.Code == "" && e.Gateway != "":
		e.Title = http.StatusText(answer.StatusCode)
		e.Detail = fmt.Sprintf("API Gateway answered %s in the server's place: %s", answer.Status, e.Message)
	case e.Code == "":
		e.Title = http.StatusText(answer.StatusCode)
		e.Detail = fmt.Sprintf("the server answered %s, and not as Belfry does", answer.Status)
		if answer.StatusCode == http.StatusBadRequest && bytes.Contains(text, []byte("HTTP request to an HTTPS server")) {
			e.Detail = "the server speaks TLS: want https:// in its address"
		}
		if to, err := answer.Location(); err == nil {
			e.Detail += fmt.Sprintf("; it sends to %s: use that address where it is the right one", to.Redacted())
		}
	}
	e.Status = answer.StatusCode
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
