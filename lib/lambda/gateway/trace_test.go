package gateway_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/lambda/gateway"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

type spans struct {
	mu  sync.Mutex
	all []trace.Data
}

func (s *spans) Export(d trace.Data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}
func (s *spans) Flush(context.Context) error { return nil }
func (s *spans) Close(context.Context) error { return nil }

// A request is below Lambda's own span where X-Ray is asked, and what Lambda decides there says nothing for a collector.
func TestARequestIsBelowItsInvocation(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for name, row := range map[string]struct {
		to, invocation string
		ratio          float64
		recorded       bool
		trace          string
	}{
		"XRaySampled":   {"xray", "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1", 0, true, id},
		"XRayUnsampled": {"xray", "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=0", 1, false, ""},
		"Collector":     {"otlp", "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=0", 1, true, "5759e988bd862e3fe1be46a994272793"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthIAM}, Trace: row.to})
			kept := &spans{}
			var err error
			if f.host.Tracer, err = trace.New(trace.Config{Export: kept, Ratio: row.ratio, Now: time.Now, NewID: rand.Uint64}); err != nil {
				t.Fatal(err)
			}
			if f.invoke, err = gateway.API(f.host, "test"); err != nil {
				t.Fatal(err)
			}
			ctx := context.WithValue(t.Context(), "x-amzn-trace-id", row.invocation) //nolint:staticcheck // aws-lambda-go's own key
			event := f.encode(request("GET", "/v1/jobs", "/v1/jobs", signed, header("X-Amzn-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793")))
			if _, err := f.invoke(ctx, event); err != nil {
				t.Fatal(err)
			}
			if (len(kept.all) > 0) != row.recorded {
				t.Fatalf("recorded %+v", kept.all)
			}
			if row.recorded && kept.all[len(kept.all)-1].ID() != row.trace {
				t.Errorf("recorded %+v, want the trace %s", kept.all[len(kept.all)-1], row.trace)
			}
		})
	}
}
