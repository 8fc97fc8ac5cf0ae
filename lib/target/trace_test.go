package target

import (
	"net/http"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

func TestTargetsLearnOfTheTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var got http.Header
	spec := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	spec.HTTP.Headers = Texts(map[string]string{"traceparent": "the job's own"})
	s := newSet(t, func(cfg *Config) { cfg.AllowExec = true })
	call := testCall()
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	if got.Get("Traceparent") != "the job's own" {
		t.Errorf("without a trace: %v", got)
	}
	from, _ := trace.Parse(parent)
	call.Trace = from.Context
	if _, err := s.Call(t.Context(), spec, call); err != nil {
		t.Fatal(err)
	}
	if all := got.Values("Traceparent"); len(all) != 1 || all[0] != parent {
		t.Errorf("got %v, want %s", all, parent)
	}
	result, err := s.Call(t.Context(), Spec{Exec: &Exec{Argv: []string{"/bin/sh", "-c", "echo $TRACEPARENT"}}}, call)
	if err != nil || strings.TrimSpace(string(result.Body)) != parent {
		t.Errorf("a process got %q, %v", result.Body, err)
	}
}
