package belfry

import (
	"context"
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
)

// overlapping enqueues runs whose handler goes on until it is let go, over a scheduler of either kind.
func overlapping(t *testing.T, b *Belfry) {
	began, let := make(chan string, 10), make(chan struct{})
	Handle(b, "slow", func(ctx context.Context, job *Job[string]) error {
		began <- job.Run
		select {
		case <-let:
		case <-ctx.Done():
		}
		return ctx.Err()
	}, SkipOverlap(1))
	start(t, b)
	first := enqueue(t, b, "slow", "a")
	if id := <-began; id != first.ID {
		t.Fatalf("%s began, want %s", id, first.ID)
	}
	second := wait(t, b, enqueue(t, b, "slow", "b").ID)
	if y := second.Why; second.State != Skipped || y == nil || y.Code != "overlap" || y.Gate != "job:slow" || y.Policy != "skip" || !slices.Equal(y.InTheWay, []string{first.ID}) {
		t.Errorf("the second is %+v, why %+v", second, second.Why)
	}
	for r, err := range b.Runs(t.Context(), "slow", Skipped) {
		if err != nil || r.ID != second.ID || r.Why == nil || !slices.Equal(r.Why.InTheWay, []string{first.ID}) {
			t.Errorf("listed as %+v, why %+v, %v", r, r.Why, err)
		}
	}
	close(let)
	if r := wait(t, b, first.ID); r.State != Succeeded || r.Why != nil {
		t.Errorf("the first is %+v", r)
	}
	// Who is opened by hand is run.
	if err := b.Retry(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, b, second.ID); r.State != Succeeded || r.Why != nil {
		t.Errorf("retried, the second is %+v", r)
	}
}

func TestSkipOverlapInThisProcess(t *testing.T) { overlapping(t, open(t, "memory:")) }

func TestSkipOverlapElsewhere(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	overlapping(t, open(t, address, Token(token), RemoteQueue("go")))
}

// What a handler is given of it is in the job, and goes with the option.
func TestSkipOverlapIsWhatTheCodeSays(t *testing.T) {
	data := "pebble://" + t.TempDir()
	for _, c := range []struct {
		opts  []JobOption
		limit int
	}{{[]JobOption{SkipOverlap(3)}, 3}, {[]JobOption{SkipOverlap(1)}, 1}, {nil, 0}} {
		b, err := Open(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		Handle(b, "a", func(context.Context, *Job[string]) error { return nil }, c.opts...)
		start(t, b)
		if got := standing(t, b, "a").Def.Overlap; got.Limit != c.limit || got.IsZero() != (c.limit == 0) {
			t.Errorf("it stands as %+v, want a limit of %d", got, c.limit)
		}
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A key is given beside a limit, in either order, and each customer's runs wait for each other alone.
func TestOverlapKeyIsForEachCustomer(t *testing.T) {
	type order struct {
		Customer string `json:"customer"`
	}
	for name, opts := range map[string][]JobOption{
		"the limit first": {SkipOverlap(1), OverlapKey("${ .payload.customer }")},
		"the key first":   {OverlapKey("${ .payload.customer }"), SkipOverlap(1)},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, "memory:")
			begun, end := make(chan string, 3), make(chan struct{})
			Handle(b, "a", func(_ context.Context, j *Job[order]) error {
				begun <- j.Payload.Customer
				<-end
				return nil
			}, opts...)
			start(t, b)
			ask := func(customer string) Run {
				r, err := Enqueue(t.Context(), b, "a", order{customer})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			ask("acme")
			<-begun
			if r := wait(t, b, ask("acme").ID); r.State != Skipped || r.Why == nil || r.Why.Key != "acme" || r.Why.Gate != "job:a" {
				t.Errorf("the second of a customer is %+v", r)
			}
			ask("other")
			if got := <-begun; got != "other" {
				t.Errorf("%s began", got)
			}
			close(end)
		})
	}
}
