package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func serve(t *testing.T, handle http.HandlerFunc) Spec {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return Spec{HTTP: &HTTP{URL: server.URL + "/hook?token=hush"}}
}

func TestHTTPTellsTheTargetAboutTheAttempt(t *testing.T) {
	var got *http.Request
	var body []byte
	spec := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Clone(t.Context())
		body, _ = io.ReadAll(r.Body)
	})
	s := newSet(t, nil)
	call := testCall()
	call.Nominal = noon.In(time.FixedZone("", 3600))

	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Belfry-Run": "run-1", "Belfry-Job": "report", "Belfry-Attempt": "2", "Belfry-Fence": "5",
		"Belfry-Nominal-Time": "2026-11-21T12:00:00Z", "Idempotency-Key": "run-1",
		"Content-Type": "application/json", "User-Agent": "Belfry",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got.Method != "POST" || string(body) != `{"n":1}` || got.URL.RawQuery != "token=hush" {
		t.Errorf("got %s %s with body %s", got.Method, got.URL, body)
	}

	call.AtMostOnce = true
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	if key, sent := got.Header["Idempotency-Key"]; sent {
		t.Errorf("an at-most-once call sent Idempotency-Key %q", key)
	}
	if got.Header.Get("Belfry-Fence") != "5" || string(body) != `{"n":1}` {
		t.Errorf("an at-most-once call lacks its fence or body: %v %s", got.Header, body)
	}

	spec.HTTP.Method = "PUT"
	spec.HTTP.Headers = Texts(map[string]string{"content-type": "text/csv", "User-Agent": "ours", "X-Team": "billing"})
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	if got.Method != "PUT" || got.Header.Get("Content-Type") != "text/csv" || got.Header.Get("User-Agent") != "ours" || got.Header.Get("X-Team") != "billing" {
		t.Errorf("the job's own method and headers did not arrive: %s %v", got.Method, got.Header)
	}

	call.Payload, spec.HTTP.Headers = nil, nil
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	if len(body) != 0 || got.Header.Get("Content-Type") != "" {
		t.Errorf("without a payload: body %q, Content-Type %q", body, got.Header.Get("Content-Type"))
	}
}

func TestHTTPKeepsTheAnswer(t *testing.T) {
	for _, size := range []int{0, 10, MaxResultBytes, MaxResultBytes + 1, 4 * MaxResultBytes} {
		t.Run(fmt.Sprintf("P11_of_%d_bytes", size), func(t *testing.T) {
			spec := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(bytes.Repeat([]byte("x"), size))
			})
			got, err := newSet(t, nil).Call(t.Context(), spec, testCall())
			if size > MaxResultBytes {
				wantFailure(t, err, KindResult, true)
				return
			}
			if err != nil || len(got.Body) != size || got.Truncated || got.ContentType != "text/plain" {
				t.Errorf("got %d bytes, truncated %t, type %q, %v", len(got.Body), got.Truncated, got.ContentType, err)
			}
		})
	}
}

func TestHTTPAnswersAreClassified(t *testing.T) {
	status := 0
	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	spec.HTTP.PermanentStatus = []int{503, 409}
	spec.HTTP.RetryStatus = []int{404, 302}
	s := newSet(t, nil)
	for _, c := range []struct {
		status    int
		permanent bool
	}{
		{400, true}, {401, true}, {403, true}, {410, true}, {412, true}, {422, true}, {451, true},
		{408, false}, {425, false}, {429, false},
		{500, false}, {501, false}, {502, false}, {504, false}, {599, false},
		{503, true}, {409, true}, {404, false}, // by the job's lists
	} {
		status = c.status
		_, err := s.Call(t.Context(), spec, testCall())
		if f := wantFailure(t, err, KindHTTPStatus, c.permanent); !strings.Contains(f.Message, strconv.Itoa(c.status)) {
			t.Errorf("the message hides the status: %s", f.Message)
		}
	}
	spec.HTTP.PermanentStatus, spec.HTTP.RetryStatus = nil, nil
	status = http.StatusConflict
	_, err := s.Call(t.Context(), spec, testCall())
	wantFailure(t, err, KindHTTPStatus, false)
}

func TestHTTPFailureSaysWhatTheTargetSaid(t *testing.T) {
	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "no such\nreport \x1b[2J"+strings.Repeat("y", 10_000))
	})
	_, err := newSet(t, nil).Call(t.Context(), spec, testCall())
	f := wantFailure(t, err, KindHTTPStatus, true)
	if !strings.HasPrefix(f.Message, "answered 400 Bad Request: no such report [2Jyyy") || len(f.Message) > 400 {
		t.Errorf("got %q", f.Message)
	}
	if strings.Contains(f.Error(), "hush") {
		t.Errorf("the error shows the query: %v", f)
	}
}

func TestHTTPRedirectsAreRefused(t *testing.T) {
	var elsewhere atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		spec := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.HTTP.URL, status) })
		_, err := newSet(t, nil).Call(t.Context(), spec, testCall())
		f := wantFailure(t, err, KindRedirect, true)
		if !strings.Contains(f.Message, "/hook") || strings.Contains(f.Message, "hush") {
			t.Errorf("want where it leads, without its query: %s", f.Message)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestRetryAfterIsObeyedAndBounded(t *testing.T) {
	status, value := 0, ""
	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", value)
		w.WriteHeader(status)
	})
	s := newSet(t, nil)
	for _, c := range []struct {
		status    int
		value     string
		permanent bool
		want      time.Duration
	}{
		{503, "120", false, 2 * time.Minute},
		{429, noon.Add(time.Hour).Format(http.TimeFormat), false, time.Hour},
		{503, noon.Add(-time.Hour).Format(http.TimeFormat), false, 0},
		{503, "864000", false, MaxRetryAfter},
		{503, "99999999999999999999999999", false, MaxRetryAfter},
		{503, noon.AddDate(80, 0, 0).Format(http.TimeFormat), false, MaxRetryAfter},
		{503, "-5", false, 0},
		{503, "soon", false, 0},
		{503, "", false, 0},
		{400, "120", true, 0},
	} {
		status, value = c.status, c.value
		_, err := s.Call(t.Context(), spec, testCall())
		if f := wantFailure(t, err, KindHTTPStatus, c.permanent); f.RetryAfter != c.want {
			t.Errorf("%d with Retry-After %q: got %v, want %v", c.status, c.value, f.RetryAfter, c.want)
		}
	}
}

func TestHTTPTimeoutAndCancelAreTwoThings(t *testing.T) {
	for _, answerBegun := range []bool{false, true} {
		t.Run(fmt.Sprintf("answer_begun_%t", answerBegun), func(t *testing.T) {
			arrived := make(chan struct{}, 2)
			release := make(chan struct{})
			spec := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if answerBegun {
					_, _ = io.WriteString(w, "begin")
					_ = http.NewResponseController(w).Flush()
				}
				arrived <- struct{}{}
				<-release
			})
			defer close(release)
			s := newSet(t, nil)

			ctx, end := timedOut(t)
			go func() { <-arrived; end() }()
			_, err := s.Call(ctx, spec, testCall())
			wantFailure(t, err, KindTimeout, false)

			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-arrived; cancel() }()
			_, err = s.Call(ctx, spec, testCall())
			wantCancelled(t, err)
		})
	}
}

func TestHTTPDeadlineIsATimeout(t *testing.T) {
	ctx, end := timedOut(t)
	spec := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		end()
		<-r.Context().Done()
	})
	_, err := newSet(t, nil).Call(ctx, spec, testCall())
	wantFailure(t, err, KindTimeout, false)
}

func TestNothingSentIsToldFromAnswerLost(t *testing.T) {
	s := newSet(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	_, err = s.Call(t.Context(), Spec{HTTP: &HTTP{URL: "http://" + closed}}, testCall())
	wantFailure(t, err, KindConnect, false)

	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	})
	_, err = s.Call(t.Context(), spec, testCall())
	wantFailure(t, err, KindLost, false)

	spec = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		_ = conn.Close()
	})
	_, err = s.Call(t.Context(), spec, testCall())
	wantFailure(t, err, KindLost, false)

	// A TLS handshake that fails is a connection that did not come about.
	tls := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	_, err = s.Call(t.Context(), Spec{HTTP: &HTTP{URL: tls.URL}}, testCall())
	wantFailure(t, err, KindConnect, false)
}

func TestP6_a_target_can_refuse_a_stale_call(t *testing.T) {
	var highest uint64
	spec := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fence, err := strconv.ParseUint(r.Header.Get("Belfry-Fence"), 10, 64)
		if err != nil || fence < highest {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		highest = fence
	})
	s := newSet(t, nil)
	call := testCall()
	call.Fence = 1<<64 - 1
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	call.Fence--
	_, err := s.Call(t.Context(), spec, call)
	wantFailure(t, err, KindHTTPStatus, true)
}

func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	var hits atomic.Int32
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	t.Setenv("HTTP_PROXY", proxy.HTTP.URL)
	t.Setenv("http_proxy", proxy.HTTP.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	// An address of documentation (RFC 5737): nobody answers there, a proxy would.
	if _, err := newSet(t, nil).Call(ctx, Spec{HTTP: &HTTP{URL: "http://192.0.2.1/"}}, testCall()); err == nil {
		t.Error("a documentation address answered")
	}
	if hits.Load() != 0 {
		t.Error("the call went to the proxy, past the address policy")
	}
}

func TestAnswersWithHugeHeadersAreRefused(t *testing.T) {
	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("z", 2000))
		}
	})
	_, err := newSet(t, nil).Call(t.Context(), spec, testCall())
	wantFailure(t, err, KindLost, false)
}

func TestCallsShareASetSafely(t *testing.T) {
	var hits atomic.Int32
	spec := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	s := newSet(t, nil)
	errs := make(chan error, 40)
	for i := range cap(errs) {
		go func() {
			call := testCall()
			call.AtMostOnce = i%2 == 0
			_, err := s.Call(t.Context(), spec, call)
			errs <- err
		}()
	}
	var all []error
	for range cap(errs) {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); err != nil || hits.Load() != int32(cap(errs)) {
		t.Fatalf("%d hits, %v", hits.Load(), err)
	}
}
