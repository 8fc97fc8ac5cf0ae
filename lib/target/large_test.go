package target

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
)

func TestALargeResultIsKeptWhereTheCallSaysSo(t *testing.T) {
	const most = 1 << 20
	for size, whole := range map[int]bool{10: true, MaxResultBytes + 1: true, most: true, most + 1: false, 3 * most: false} {
		spec := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), size)) })
		call := testCall()
		call.MaxResult = most
		s := newSet(t, func(c *Config) { c.AllowExec = true })
		got, err := s.Call(t.Context(), spec, call)
		if !whole {
			wantFailure(t, err, KindResult, true)
		} else if err != nil || len(got.Body) != size {
			t.Errorf("http: got %d bytes of %d, %v", len(got.Body), size, err)
		}
		got.Release()
		got, err = s.Call(t.Context(), Spec{Exec: &Exec{Argv: []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\000' x", size)}}}, call)
		if err != nil || len(got.Body) != min(size, most) || got.Truncated == whole {
			t.Errorf("exec: got %d bytes of %d, cut %t, %v", len(got.Body), size, got.Truncated, err)
		}
		got.Release()
		for i := range largeResults {
			place := s.large.Place("x")
			defer place.Give()
			if !place.Try() {
				t.Errorf("%d results of %d bytes still have their room", largeResults-i, size)
			}
		}
	}
}

// However many attempts a worker makes, it holds a few large results at once. Who waits for room is stopped by the end of its time.
func TestLargeResultsAreHeldAFewAtOnce_P11(t *testing.T) {
	s := newSet(t, nil)
	call := testCall()
	call.MaxResult = 2 << 20
	spec := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20)) })
	var held []Result
	for range largeResults {
		got, err := s.Call(t.Context(), spec, call)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	spec = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		close(waits)
	})
	ended := make(chan error)
	go func() {
		_, err := s.Call(ctx, spec, call)
		ended <- err
	}()
	<-waits
	cancel()
	if err := <-ended; err == nil {
		t.Error("one result more than there is room for was kept")
	}
	held[0].Release()
	held[0].Release() // once more changes nothing
	spec = serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20)) })
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Errorf("there is room again, and: %v", err)
	}
}
