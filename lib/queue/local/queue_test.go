package local_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
)

func send(t testing.TB, q *local.Queue, p queue.Priority, batch ...queue.Outgoing) {
	t.Helper()
	errs, err := q.Send(context.Background(), p, batch...)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func receive(t testing.TB, q *local.Queue, max int, wait, visibility time.Duration) []queue.Message {
	t.Helper()
	got, err := q.Receive(context.Background(), max, wait, visibility)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return got
}

func text(body string) queue.Outgoing { return queue.Outgoing{Body: []byte(body)} }

// take receives everything there is to receive now.
func take(t testing.TB, q *local.Queue, visibility time.Duration) []queue.Message {
	t.Helper()
	var all []queue.Message
	for {
		batch := receive(t, q, queue.MaxBatch, 0, visibility)
		if len(batch) == 0 {
			return all
		}
		all = append(all, batch...)
	}
}

func TestOf16TakenThreeAreNormalAndOneIsLowWhileTheyWait(t *testing.T) {
	q := local.New(local.Config{})
	for range 160 {
		for _, p := range queue.Priorities {
			send(t, q, p, text(string(p)))
		}
	}
	for round := range 10 {
		got := map[queue.Priority]int{}
		for range 16 {
			got[receive(t, q, 1, 0, time.Hour)[0].Priority]++
		}
		if got[queue.High] != 12 || got[queue.Normal] != 3 || got[queue.Low] != 1 {
			t.Fatalf("round %d: took %v, want 12 high, 3 normal, 1 low", round, got)
		}
	}
}

func TestAFloorThatHasNothingWaitingGoesToTheHighest(t *testing.T) {
	q := local.New(local.Config{})
	for range 32 {
		send(t, q, queue.High, text("high"))
		send(t, q, queue.Low, text("low"))
	}
	got := map[queue.Priority]int{}
	for range 32 {
		got[receive(t, q, 1, 0, time.Hour)[0].Priority]++
	}
	if got[queue.High] != 30 || got[queue.Low] != 2 {
		t.Fatalf("took %v, want 30 high, 2 low", got)
	}
}

func TestFault52_a_flood_of_one_tenant_leaves_the_others_their_turns(t *testing.T) {
	q := local.New(local.Config{})
	for i := range 100 {
		send(t, q, queue.Normal, queue.Outgoing{Body: fmt.Appendf(nil, "flood %d", i), Group: "flood"})
	}
	for _, g := range []string{"one", "two"} {
		for i := range 2 {
			send(t, q, queue.Normal, queue.Outgoing{Body: fmt.Appendf(nil, "%s %d", g, i), Group: g})
		}
	}
	var got []string
	for _, m := range receive(t, q, 8, 0, time.Hour) {
		got = append(got, string(m.Body))
	}
	want := []string{"flood 0", "one 0", "two 0", "flood 1", "one 1", "two 1", "flood 2", "flood 3"}
	if !slices.Equal(got, want) {
		t.Fatalf("took %q, want %q", got, want)
	}
}

func TestADelayedMessageIsReceivedAtItsVeryInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		start := time.Now()
		for _, d := range []time.Duration{5 * time.Second, time.Nanosecond, 1700 * time.Millisecond, 15 * time.Minute} {
			send(t, q, queue.Normal, queue.Outgoing{Body: []byte(d.String()), Delay: d})
		}
		var got []string
		for len(got) < 4 {
			for _, m := range receive(t, q, 1, queue.MaxWait, time.Hour) {
				if late := time.Since(start).String(); late != string(m.Body) {
					t.Errorf("the message delayed by %s came after %s", m.Body, late)
				}
				got = append(got, string(m.Body))
			}
		}
	})
}

// What became ready goes before what is sent later, whether or not anybody has looked at the queue in between.
func TestADelayedMessageThatIsReadyGoesBeforeOneThatIsSentLater(t *testing.T) {
	for _, looks := range []bool{false, true} {
		now := time.Unix(0, 0)
		q := local.New(local.Config{Now: func() time.Time { return now }})
		send(t, q, queue.Normal, queue.Outgoing{Body: []byte("delayed"), Delay: time.Second}, text("taken"))
		receive(t, q, 1, 0, 2*time.Second)
		now = now.Add(3 * time.Second)
		if looks {
			if _, err := q.Depth(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		send(t, q, queue.Normal, text("sent later"))
		var got []string
		for _, m := range take(t, q, time.Minute) {
			got = append(got, string(m.Body))
		}
		if want := []string{"delayed", "taken", "sent later"}; !slices.Equal(got, want) {
			t.Errorf("looked at before: %v: took %q, want %q", looks, got, want)
		}
	}
}

func TestAnEarlierDelaySentLaterWakesTheWaitingEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		start := time.Now()
		send(t, q, queue.Normal, queue.Outgoing{Body: []byte("ten"), Delay: 10 * time.Second})
		got := make(chan string)
		for range 2 {
			go func() {
				m := receive(t, q, 1, queue.MaxWait, time.Hour)
				got <- fmt.Sprintf("%s after %v", m[0].Body, time.Since(start))
			}()
		}
		synctest.Wait()
		send(t, q, queue.Normal, queue.Outgoing{Body: []byte("three"), Delay: 3 * time.Second})
		for _, want := range []string{"three after 3s", "ten after 10s"} {
			if m := <-got; m != want {
				t.Errorf("got %s, want %s", m, want)
			}
		}
	})
}

func TestVisibilityEndsAtItsVeryInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		send(t, q, queue.Normal, text("work"))
		first := receive(t, q, 1, 0, 7*time.Second)[0]
		time.Sleep(6 * time.Second)
		if _, err := q.Extend(t.Context(), 9*time.Second, first); err != nil {
			t.Fatal(err)
		}
		extended := time.Now()
		again := receive(t, q, 1, queue.MaxWait, time.Minute)
		if len(again) != 1 || time.Since(extended) != 9*time.Second || again[0].Receives != 2 {
			t.Fatalf("received %v after %v, want the second delivery after 9s", again, time.Since(extended))
		}
	})
}

func TestTheNewestReceiptOutlivesItsVisibility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		send(t, q, queue.Normal, text("deleted"), text("extended"))
		got := receive(t, q, 2, 0, time.Second)
		time.Sleep(2 * time.Second)
		if errs, err := q.Delete(t.Context(), got[0]); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		if errs, err := q.Extend(t.Context(), time.Minute, got[1]); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		if d := depth(t, q)[queue.Normal]; d != (queue.Depth{Taken: 1}) {
			t.Fatalf("depth is %+v, want one taken", d)
		}
	})
}

func TestVisibilityIsBoundedFromTheReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		send(t, q, queue.Normal, text("work"))
		m := receive(t, q, 1, 0, 2*time.Hour)[0]
		time.Sleep(time.Hour)
		errs, err := q.Extend(t.Context(), 11*time.Hour+time.Second, m)
		if err != nil || !errors.Is(errs[0], queue.ErrLimit) {
			t.Fatalf("an extension to over 12h gave %v, %v, want ErrLimit", errs, err)
		}
		if errs, err := q.Extend(t.Context(), 11*time.Hour, m); err != nil || errs[0] != nil {
			t.Fatalf("an extension to 12h gave %v, %v", errs, err)
		}
	})
}

func TestAReceiverThatGivesUpPassesItsWakeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		for range 200 {
			giveUp, cancel := context.WithCancel(t.Context())
			got := make(chan int, 2)
			go func() {
				batch, _ := q.Receive(giveUp, 1, queue.MaxWait, time.Hour)
				got <- len(batch)
			}()
			synctest.Wait()
			go func() { got <- len(receive(t, q, 1, queue.MaxWait, time.Hour)) }()
			synctest.Wait()
			start := time.Now()
			// Both are ready for the first receiver when it looks; which it sees is a coin's throw.
			send(t, q, queue.Normal, text("work"))
			cancel()
			synctest.Wait()
			if len(got) == 2 {
				if n := <-got + <-got; n != 1 {
					t.Fatalf("%d messages received, want 1", n)
				}
				continue
			}
			// The first took it, the second goes on waiting.
			if n := <-got; n != 1 {
				t.Fatal("the message woke nobody")
			}
			send(t, q, queue.Normal, text("for the second"))
			if n := <-got; n != 1 || time.Since(start) != 0 {
				t.Fatalf("the second received %d messages after %v", n, time.Since(start))
			}
		}
	})
}

func TestOneSendWakesAsManyAsItCanFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := local.New(local.Config{})
		start := time.Now()
		got := make(chan int, 5)
		for range 5 {
			go func() { got <- len(receive(t, q, 1, queue.MaxWait, time.Hour)) }()
		}
		synctest.Wait()
		send(t, q, queue.Normal, text("1"), text("2"), text("3"))
		synctest.Wait()
		if len(got) != 3 || time.Since(start) != 0 {
			t.Fatalf("%d receivers woke, want 3 at once", len(got))
		}
		for range 3 {
			if n := <-got; n != 1 {
				t.Errorf("a woken receiver took %d messages, want 1", n)
			}
		}
		for range 2 {
			if n := <-got; n != 0 || time.Since(start) != queue.MaxWait {
				t.Errorf("received %d after %v, want nothing at the end of the wait", n, time.Since(start))
			}
		}
	})
}

func depth(t testing.TB, q *local.Queue) map[queue.Priority]queue.Depth {
	t.Helper()
	d, err := q.Depth(context.Background())
	if err != nil {
		t.Fatalf("depth: %v", err)
	}
	return d
}

func TestFault23_only_what_was_refused_goes_again(t *testing.T) {
	q := local.New(local.Config{Capacity: 3})
	batch := []queue.Outgoing{text("a"), text("b"), text("c"), text("d"), text("e")}
	errs, err := q.Send(t.Context(), queue.Normal, batch...)
	if err != nil {
		t.Fatal(err)
	}
	var again []queue.Outgoing
	for i, err := range errs {
		if err == nil {
			continue
		}
		if !errors.Is(err, queue.ErrFull) {
			t.Errorf("message %d: %v, want ErrFull", i, err)
		}
		again = append(again, batch[i])
	}
	first := take(t, q, time.Hour)
	if _, err := q.Delete(t.Context(), first...); err != nil {
		t.Fatal(err)
	}
	send(t, q, queue.Normal, again...)
	got := map[string]int{}
	for _, m := range append(first, take(t, q, time.Hour)...) {
		got[string(m.Body)]++
	}
	if len(got) != 5 || got["a"]+got["b"]+got["c"]+got["d"]+got["e"] != 5 {
		t.Fatalf("received %v, want each once", got)
	}
}

func TestP11_Fault26_a_flood_is_refused_and_what_was_taken_is_kept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const inFlight = 120_000
		q := local.New(local.Config{Capacity: inFlight})
		flood(t, q, queue.Normal, inFlight)
		if errs, err := q.Send(t.Context(), queue.Normal, text("one more")); err != nil || !errors.Is(errs[0], queue.ErrFull) {
			t.Fatalf("a send over the capacity gave %v, %v, want ErrFull", errs, err)
		}
		if taken := take(t, q, time.Minute); len(taken) != inFlight {
			t.Fatalf("%d of %d messages received", len(taken), inFlight)
		}
		if errs, err := q.Send(t.Context(), queue.Normal, text("one more")); err != nil || !errors.Is(errs[0], queue.ErrFull) {
			t.Fatalf("a send while all are in flight gave %v, %v, want ErrFull", errs, err)
		}
		time.Sleep(time.Minute)
		seen := map[string]bool{}
		for _, m := range take(t, q, time.Minute) {
			seen[string(m.Body)] = true
		}
		if len(seen) != inFlight {
			t.Fatalf("%d of %d messages came back", len(seen), inFlight)
		}
	})
}

func flood(t testing.TB, q *local.Queue, p queue.Priority, n int) {
	batch := make([]queue.Outgoing, 0, queue.MaxBatch)
	for i := range n {
		batch = append(batch, queue.Outgoing{Body: fmt.Appendf(nil, "%d", i)})
		if len(batch) == queue.MaxBatch || i == n-1 {
			send(t, q, p, batch...)
			batch = batch[:0]
		}
	}
}

func TestP11_BodiesAreBoundedByTheirBytes(t *testing.T) {
	q := local.New(local.Config{Bytes: 10})
	send(t, q, queue.Low, text("12345"))
	errs, err := q.Send(t.Context(), queue.Low, text("123456"), text("12345"))
	if err != nil || !errors.Is(errs[0], queue.ErrFull) || errs[1] != nil {
		t.Fatalf("gave %v, %v, want the first refused with ErrFull, the second taken", errs, err)
	}
	got := take(t, q, time.Hour)
	if _, err := q.Delete(t.Context(), got...); err != nil {
		t.Fatal(err)
	}
	send(t, q, queue.Low, text("1234567890"))
}

func TestFault27_a_full_queue_drains_itself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity = 50
		q := local.New(local.Config{Capacity: capacity})
		flood(t, q, queue.Low, capacity)
		full := func() {
			t.Helper()
			if errs, err := q.Send(t.Context(), queue.Low, text("new work")); err != nil || !errors.Is(errs[0], queue.ErrFull) {
				t.Fatalf("new work gave %v, %v, want ErrFull", errs, err)
			}
		}
		full()
		send(t, q, queue.High, text("urgent work has its own room"))
		if m := receive(t, q, 1, 0, time.Hour); m[0].Priority != queue.High {
			t.Fatalf("received %q, want the urgent work first", m[0].Body)
		}

		taken := take(t, q, time.Hour)
		full() // the room of what was taken is not given away
		for batch := range slices.Chunk(taken[:20], queue.MaxBatch) {
			if errs, err := q.Extend(t.Context(), 0, batch...); err != nil || errors.Join(errs...) != nil {
				t.Fatalf("handing back gave %v, %v", errs, err)
			}
		}
		full()
		time.Sleep(time.Hour)
		again := take(t, q, time.Minute)
		if len(again) != capacity+1 {
			t.Fatalf("%d messages came back, want %d", len(again), capacity+1)
		}
		full()
		for batch := range slices.Chunk(again, queue.MaxBatch) {
			if errs, err := q.Delete(t.Context(), batch...); err != nil || errors.Join(errs...) != nil {
				t.Fatalf("deleting gave %v, %v", errs, err)
			}
		}
		flood(t, q, queue.Low, capacity)
	})
}

func TestAClockThatStepsBackBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offset time.Duration
		q := local.New(local.Config{Now: func() time.Time { return time.Now().Round(0).Add(offset) }})
		send(t, q, queue.Normal,
			queue.Outgoing{Body: []byte("delayed"), Delay: 10 * time.Second}, text("taken"))
		receive(t, q, 1, 0, 10*time.Second)
		time.Sleep(4 * time.Second)
		depth(t, q) // the clock was read before it stepped
		offset = -time.Hour
		depth(t, q)
		if got := take(t, q, time.Hour); len(got) != 0 {
			t.Fatalf("received %q early", got[0].Body)
		}
		time.Sleep(6 * time.Second)
		if got := take(t, q, time.Hour); len(got) != 2 {
			t.Fatalf("received %d messages at their time, want 2", len(got))
		}
	})
}

func TestAReceiptOfAnotherQueueNamesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := local.New(local.Config{})
		send(t, before, queue.Normal, text("before"))
		old := receive(t, before, 1, 0, time.Hour)[0]
		time.Sleep(time.Nanosecond)
		q := local.New(local.Config{})
		send(t, q, queue.Normal, text("after"))
		receive(t, q, 1, 0, time.Hour)
		if errs, err := q.Delete(t.Context(), old); err != nil || errs[0] != nil {
			t.Fatalf("deleting by the receipt of an earlier life gave %v, %v", errs, err)
		}
		if d := depth(t, q)[queue.Normal]; d.Taken != 1 {
			t.Fatalf("depth is %+v, want one taken", d)
		}
		errs, err := q.Delete(t.Context(), queue.Message{Receipt: "nonsense"})
		if err != nil || errs[0] == nil || !strings.Contains(errs[0].Error(), "receipt") {
			t.Fatalf("deleting by nonsense gave %v, %v, want an error that names the receipt", errs, err)
		}
	})
}

func TestAClockBefore1970IsAsGoodAsAnother(t *testing.T) {
	q := local.New(local.Config{Now: func() time.Time { return time.Time{} }})
	send(t, q, queue.Normal, text("work"))
	if _, err := q.Delete(t.Context(), receive(t, q, 1, 0, time.Hour)...); err != nil {
		t.Fatal(err)
	}
	if d := depth(t, q)[queue.Normal]; d != (queue.Depth{}) {
		t.Fatalf("depth is %+v after the delete, want nothing", d)
	}
}

// TestRandomOperations holds the queue against a model that knows, of each message, only when it may be received.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomOperations(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func randomOperations(t *testing.T, r *rand.Rand) {
	type known struct {
		visible  time.Time
		receives int
		newest   queue.Message
	}
	q := local.New(local.Config{})
	model := map[string]*known{}
	var old []queue.Message
	for i := range 2000 {
		now := time.Now()
		due := 0
		for _, k := range model {
			if !k.visible.After(now) {
				due++
			}
		}
		var ready, all int64
		for _, d := range depth(t, q) {
			ready += d.Ready
			all += d.Ready + d.Delayed + d.Taken
		}
		if int(ready) != due || int(all) != len(model) {
			t.Fatalf("step %d: %d ready of %d, want %d of %d", i, ready, all, due, len(model))
		}
		body := fmt.Sprint(i)
		switch r.IntN(8) {
		case 0, 1, 2:
			d := time.Duration(r.IntN(3)*r.IntN(5000)) * time.Millisecond
			send(t, q, queue.Priorities[r.IntN(3)], queue.Outgoing{Body: []byte(body), Delay: d, Group: fmt.Sprint(r.IntN(3))})
			model[body] = &known{visible: now.Add(d)}
		case 3, 4:
			max, visibility := 1+r.IntN(10), time.Duration(r.IntN(5000))*time.Millisecond
			got := receive(t, q, max, 0, visibility)
			if len(got) != min(max, due) {
				t.Fatalf("step %d: received %d, want %d", i, len(got), min(max, due))
			}
			for _, m := range got {
				k := model[string(m.Body)]
				if k == nil || k.visible.After(now) || m.Receives != k.receives+1 {
					t.Fatalf("step %d: received %+v, known %+v", i, m, k)
				}
				if k.receives > 0 {
					old = append(old, k.newest)
				}
				k.receives, k.newest, k.visible = m.Receives, m, now.Add(visibility)
			}
		case 5:
			for body, k := range model {
				if k.receives > 0 {
					if _, err := q.Delete(t.Context(), k.newest); err != nil {
						t.Fatal(err)
					}
					delete(model, body)
					old = append(old, k.newest)
					break
				}
			}
		case 6:
			visibility := time.Duration(r.IntN(3)) * time.Second
			for _, k := range model {
				if k.receives > 0 {
					if _, err := q.Extend(t.Context(), visibility, k.newest); err != nil {
						t.Fatal(err)
					}
					k.visible = now.Add(visibility)
					break
				}
			}
			if len(old) > 0 {
				m := old[r.IntN(len(old))]
				if _, err := q.Extend(t.Context(), 0, m); err != nil {
					t.Fatal(err)
				}
				if _, err := q.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
		case 7:
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		}
	}
}

// Who moves the queue's clock learns when there is something to receive, of whatever kind.
func TestNextIsWhenAMessageCanBeReceived(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := begin
	q := local.New(local.Config{Now: func() time.Time { return now }})
	want := func(what string, in time.Duration) {
		t.Helper()
		at, ok := q.Next()
		if ok != (in >= 0) || ok && !at.Equal(now.Add(in)) {
			t.Errorf("%s: next at %s, %v; want in %s (negative: never)", what, at, ok, in)
		}
	}
	want("an empty queue", -1)
	send(t, q, queue.Low, queue.Outgoing{Body: []byte("a"), Delay: time.Minute})
	want("a delayed message", time.Minute)
	now = now.Add(time.Minute)
	want("its time", 0)
	got := receive(t, q, 1, 0, 30*time.Second)
	want("a message that was taken", 30*time.Second)
	now = now.Add(-time.Hour) // a clock that was set back counts as one that stood still
	want("behind a step back", 30*time.Second)
	if _, err := q.Extend(t.Context(), 0, got[0]); err != nil {
		t.Fatal(err)
	}
	want("one that was handed back", 0)
	if _, err := q.Delete(t.Context(), take(t, q, time.Hour)...); err != nil {
		t.Fatal(err)
	}
	want("a queue that was emptied", -1)
}
