package belfry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
)

// strictly has runs of a strict job fail, over a scheduler of either kind, and lets its line go on behind them.
func strictly(t *testing.T, b *Belfry) {
	ctx := t.Context()
	began, end := make(chan string, 10), make(chan error)
	Handle(b, "ledger", func(_ context.Context, job *Job[string]) error {
		began <- job.Run
		return <-end
	}, StrictOverlap(10))
	Handle(b, "free", func(context.Context, *Job[string]) error { return nil })
	start(t, b)
	no := Permanent(errors.New("no"))
	fails := func(r Run) Run {
		t.Helper()
		if id := <-began; id != r.ID {
			t.Fatalf("%s began, want %s", id, r.ID)
		}
		end <- no
		if r = wait(t, b, r.ID); r.State != Failed {
			t.Fatalf("it is %+v", r)
		}
		return r
	}
	first := fails(enqueue(t, b, "ledger", "a"))
	second := enqueue(t, b, "ledger", "b")
	for r := second; r.State != Waiting; { // it comes to the line in its own time
		var err error
		if r, err = b.Run(ctx, second.ID); err != nil || r.State != Queued && r.State != Waiting {
			t.Fatalf("the second is %+v, %v", r, err)
		}
		time.Sleep(time.Millisecond)
	}
	for name, row := range map[string]struct {
		job  string
		o    Opening
		code Code
		says string
	}{
		"behind another run":          {"ledger", Opening{Run: second.ID}, CodeNotBlocking, first.ID},
		"behind another end of it":    {"ledger", Opening{Run: first.ID, Ended: first.Ended.Add(-time.Second)}, CodeNotBlocking, "again"},
		"behind an end of no run":     {"ledger", Opening{Ended: first.Ended}, CodeInvalid, "run"},
		"behind a run of another job": {"ledger", Opening{Run: "free~0mi4lf3k0"}, CodeInvalid, "run"},
		"of a job that is not there":  {"never", Opening{}, "gate_not_found", "never"},
		"of a job that bounds none":   {"free", Opening{}, "own_gate", "not strict"},
	} {
		if err := b.OpenLine(ctx, row.job, row.o); !HasCode(err, row.code) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := b.Run(ctx, second.ID); err != nil || r.State != Waiting {
		t.Fatalf("before the line is opened the second is %+v, %v", r, err)
	}
	for range 2 { // the answer to the first may be lost
		if err := b.OpenLine(ctx, "ledger", Opening{Run: first.ID, Ended: first.Ended, Reason: "made up by hand"}); err != nil {
			t.Fatal(err)
		}
	}
	fails(second)
	third := enqueue(t, b, "ledger", "c")
	if err := b.OpenLine(ctx, "ledger", Opening{}); err != nil {
		t.Fatal(err)
	}
	fails(third)
	if r, err := b.Run(ctx, first.ID); err != nil || r.State != Failed {
		t.Errorf("the first is %+v, %v", r, err)
	}
}

func TestOpenLineInThisProcess(t *testing.T) { strictly(t, open(t, "memory:")) }

func TestOpenLineElsewhere(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	strictly(t, open(t, address, Token(token), RemoteQueue("go")))
}
