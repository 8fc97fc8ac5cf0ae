package room

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// line has somebody of each tenant wait, one after the other, and gives the order in which they were let in.
func line(t *testing.T, r *Room, tenants string) (order func() string, leave []context.CancelFunc) {
	t.Helper()
	var mu sync.Mutex
	var in []string
	var all sync.WaitGroup
	for _, tenant := range strings.Fields(tenants) {
		ctx, cancel := context.WithCancel(t.Context())
		leave = append(leave, cancel)
		all.Go(func() {
			p := r.Place(tenant[:1])
			switch err := p.Take(ctx); {
			case errors.Is(err, context.Canceled):
				return
			case err != nil:
				t.Error(err)
			}
			mu.Lock()
			in = append(in, tenant)
			mu.Unlock()
			p.Give()
		})
		synctest.Wait()
	}
	return func() string { all.Wait(); return strings.Join(in, " ") }, leave
}

// A tenant of whom many wait holds up another by one of his at the most; within a tenant who comes first goes first.
func TestTenantsHaveTheirTurns(t *testing.T) {
	for waits, want := range map[string]string{
		"a1 a2 a3 a4":                "a1 a2 a3 a4",
		"a1 a2 a3 a4 a5 b1 b2":       "a1 b1 a2 b2 a3 a4 a5",
		"a1 a2 a3 b1 c1 a4 c2 b2 a5": "a1 b1 c1 a2 b2 c2 a3 a4 a5",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := Of(1)
			first := r.Place("x")
			if !first.Try() || r.Place("y").Try() {
				t.Fatal("a room for one is one for none, or for two")
			}
			order, _ := line(t, r, waits)
			first.Give()
			if got := order(); got != want {
				t.Errorf("of %s they were let in as %s, want %s", waits, got, want)
			}
			if len(r.lines)+len(r.round) != 0 || r.free != 1 {
				t.Errorf("%d lines, %d tenants and %d places are left", len(r.lines), len(r.round), r.free)
			}
		})
	}
}

// Who gives up waits no more, and takes nobody's turn.
func TestWhoGivesUpHasNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Of(2)
		held := []*Place{r.Place("x"), r.Place("y")}
		for _, p := range held {
			if err := p.Take(t.Context()); err != nil || !p.Taken() {
				t.Fatal(err)
			}
		}
		order, leave := line(t, r, "a1 a2 b1 b2 c1")
		for _, i := range []int{0, 2, 3} {
			leave[i]()
		}
		synctest.Wait()
		held[0].Give()
		synctest.Wait()
		held[1].Give()
		if got := order(); got != "a2 c1" {
			t.Errorf("%s were let in, want a2 c1", got)
		}
		if len(r.lines)+len(r.round) != 0 || r.free != 2 {
			t.Errorf("%d lines, %d tenants and %d places are left", len(r.lines), len(r.round), r.free)
		}
	})
}

// A place is taken once and given back once, whatever is said how often.
func TestAPlaceIsTakenOnceAndGivenOnce(t *testing.T) {
	r := Of(1)
	p := r.Place("a")
	for range 2 {
		if err := p.Take(t.Context()); err != nil || !p.Try() {
			t.Fatal(err)
		}
	}
	if p.Give(); p.Taken() || r.free != 1 {
		t.Errorf("%d places are free", r.free)
	}
	p.Give()
	if none := (*Place)(nil); none.Take(t.Context()) != nil || none.Try() || none.Taken() || r.free != 1 {
		t.Errorf("nobody has taken a place, or %d are free", r.free)
	}
	(*Place)(nil).Give()
}

// Whoever is let in and gives up in the same moment leaves no place behind that nobody has.
func TestNoPlaceIsLost(t *testing.T) {
	r := Of(3)
	tenants := []string{"a", "b", "c", "d"}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			p := r.Place(tenants[i%len(tenants)])
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); cancel() }()
			if err := p.Take(ctx); (err == nil) != p.Taken() {
				t.Errorf("%v, and he has a place: %t", err, p.Taken())
			}
			p.Give()
			<-done
		})
	}
	all.Wait()
	if r.free != 3 || len(r.lines) != 0 || len(r.round) != 0 {
		t.Errorf("%d of 3 places are free, %d lines", r.free, len(r.lines))
	}
}
