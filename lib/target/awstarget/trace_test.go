package awstarget

import (
	"net/http"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

func TestServicesLearnOfTheTrace(t *testing.T) {
	from, _ := trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	for _, arn := range all {
		var headers []string
		s := &services{}
		c := callerOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headers = append(headers, r.Header.Get("X-Amzn-Trace-Id"))
			s.ServeHTTP(w, r)
		}))
		call := target.Call{Tenant: "acme", Run: "report~1", Job: "report", Attempt: 1, Fence: 2, Trace: from.Context}
		if _, err := c.Call(t.Context(), target.AWS{ARN: arn}, call); err != nil {
			t.Fatalf("%s: %v", arn, err)
		}
		if _, err := c.Call(trace.With(t.Context(), from), target.AWS{ARN: arn}, call); err != nil {
			t.Fatalf("%s: %v", arn, err)
		}
		const want = "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1"
		if len(headers) != 2 || headers[0] != "" || headers[1] != want {
			t.Errorf("%s got %q, want none and %s", arn, headers, want)
		}
	}
}
