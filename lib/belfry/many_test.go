package belfry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
)

// orders are more than one call of the API takes.
func orders(n int) (all []Order[mail]) {
	for i := range n {
		all = append(all, Order[mail]{Payload: mail{To: fmt.Sprint(i)}})
	}
	return all
}

func TestWhatIgnoresAPauseRunsInIt(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	for name, b := range map[string]*Belfry{"here": open(t, "memory:"), "elsewhere": open(t, address, Token(token), RemoteQueue("go"))} {
		t.Run(name, func(t *testing.T) {
			Handle(b, "email", func(context.Context, *Job[mail]) error { return nil })
			start(t, b)
			if err := b.Pause(t.Context(), "email", "its server moves"); err != nil {
				t.Fatal(err)
			}
			held, err := Enqueue(t.Context(), b, "email", mail{})
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := EnqueueMany(t.Context(), b, "email", Order[mail]{Options: []EnqueueOption{IgnorePause()}})
			if err != nil {
				t.Fatal(err)
			}
			one, err := Enqueue(t.Context(), b, "email", mail{}, IgnorePause())
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{one.ID, verdicts[0].Run.ID} {
				if r, err := b.Wait(t.Context(), id); err != nil || r.State != Succeeded {
					t.Errorf("it is %s, %v", r.State, err)
				}
			}
			if r, err := b.Run(t.Context(), held.ID); err != nil || r.State.Ended() || r.Attempt != 0 {
				t.Errorf("what is held is %s in attempt %d, %v", r.State, r.Attempt, err)
			}
		})
	}
}

func TestManyAreEnqueuedInTheirOrder(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	for name, b := range map[string]*Belfry{"here": open(t, "memory:"), "elsewhere": open(t, address, Token(token), RemoteQueue("go"))} {
		t.Run(name, func(t *testing.T) {
			Handle(b, "email", func(_ context.Context, job *Job[mail]) error {
				job.Result = job.Payload.To
				return nil
			})
			start(t, b)
			verdicts, err := EnqueueMany(t.Context(), b, "email", orders(1200)...)
			if err != nil || len(verdicts) != 1200 {
				t.Fatalf("%d verdicts, %v", len(verdicts), err)
			}
			ids := map[string]bool{}
			for _, v := range verdicts {
				ids[v.Run.ID] = true
			}
			if len(ids) != 1200 {
				t.Errorf("%d runs of 1200 orders", len(ids))
			}
			for _, i := range []int{0, 999, 1000, 1199} {
				if r := wait(t, b, verdicts[i].Run.ID); r.State != Succeeded || string(r.Result) != fmt.Sprintf("%q", fmt.Sprint(i)) {
					t.Errorf("order %d became %+v", i, r)
				}
			}
		})
	}
}

// One that is refused leaves the others be, and its verdict and the error say which it is.
func TestEachOfManyHasItsVerdict(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	for name, b := range map[string]*Belfry{"here": open(t, "memory:"), "elsewhere": open(t, address, Token(token), RemoteQueue("go"))} {
		t.Run(name, func(t *testing.T) {
			Handle(b, "email", func(context.Context, *Job[mail]) error { return nil })
			start(t, b)
			first := enqueue(t, b, "email", mail{To: "ann"}, Key("once"), Delay(time.Hour))
			verdicts, err := EnqueueMany(t.Context(), b, "email",
				Order[mail]{mail{To: "ann"}, []EnqueueOption{Key("once"), Delay(time.Hour)}},
				Order[mail]{mail{To: "bob"}, []EnqueueOption{Key("once"), Delay(time.Hour)}},
				Order[mail]{mail{To: "cid"}, []EnqueueOption{Delay(6 * 365 * 24 * time.Hour)}},
				Order[mail]{Payload: mail{To: "dan"}},
			)
			if len(verdicts) != 4 || !HasCode(err, CodeKeyReused) || !strings.Contains(err.Error(), "order 2 of 4: ") {
				t.Fatalf("%+v, %v", verdicts, err)
			}
			if verdicts[0].Err != nil || verdicts[0].Run.ID != first.ID {
				t.Errorf("the same request again: %+v, want run %s", verdicts[0], first.ID)
			}
			if !HasCode(verdicts[1].Err, CodeKeyReused) || !HasCode(verdicts[2].Err, CodeInvalid) {
				t.Errorf("%v and %v, want key reused and invalid", verdicts[1].Err, verdicts[2].Err)
			}
			if verdicts[3].Err != nil {
				t.Fatal(verdicts[3].Err)
			}
			if r := wait(t, b, verdicts[3].Run.ID); r.State != Succeeded {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestManyThatCannotBeRightAreRefusedWhole(t *testing.T) {
	b := open(t, "memory:")
	Handle(b, "email", func(context.Context, *Job[mail]) error { return nil })
	start(t, b)
	if verdicts, err := EnqueueMany(t.Context(), b, "email", Order[int]{Payload: 1}); verdicts != nil || !HasCode(err, CodeInvalid) {
		t.Errorf("a payload of another type: %v, %v", verdicts, err)
	}
	if verdicts, err := EnqueueMany(t.Context(), b, "email", Order[mail]{}, Order[mail]{}); len(verdicts) != 2 || err != nil {
		t.Errorf("empty ones: %v, %v", verdicts, err)
	}
	if verdicts, err := EnqueueMany[mail](t.Context(), b, "email"); len(verdicts) != 0 || err != nil {
		t.Errorf("none: %v, %v", verdicts, err)
	}
	if verdicts, err := EnqueueMany(t.Context(), b, "nobody", Order[mail]{}); len(verdicts) != 1 || !HasCode(err, CodeJobNotFound) {
		t.Errorf("no such job: %v, %v", verdicts, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if verdicts, err := EnqueueMany(ctx, b, "email", orders(3)...); len(verdicts) != 3 || err == nil || verdicts[2].Err == nil {
		t.Errorf("after the end of its context: %v, %v", verdicts, err)
	}
}
