package local_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
)

func look(t testing.TB, q *local.Queue, group string, most int) queue.Look {
	t.Helper()
	l, err := q.Look(t.Context(), group, most)
	if err != nil {
		t.Fatalf("look: %v", err)
	}
	return l
}

func bodies(all []queue.Held) []string {
	texts := make([]string, len(all))
	for i, h := range all {
		texts[i] = string(h.Body)
	}
	return texts
}

func TestALookShowsWhereEachMessageOfAGroupStands(t *testing.T) {
	start := time.Unix(1_000, 0)
	now := start
	q := local.New(local.Config{Now: func() time.Time { return now }})
	for _, group := range []string{"ours", "theirs"} {
		for i, delay := range []time.Duration{0, 0, 3 * time.Second, time.Second, 3 * time.Second} {
			send(t, q, queue.Normal, queue.Outgoing{Body: fmt.Appendf(nil, "%s %d", group, i), Delay: delay, Group: group})
		}
		send(t, q, queue.Low, queue.Outgoing{Body: []byte(group + " low"), Group: group})
	}
	l := look(t, q, "ours", 10)
	if got := bodies(l.Ready[1]); !slices.Equal(got, []string{"ours 0", "ours 1"}) {
		t.Errorf("ready are %q", got)
	}
	if got := bodies(l.Delayed[1]); !slices.Equal(got, []string{"ours 3", "ours 2", "ours 4"}) {
		t.Errorf("delayed are %q", got)
	}
	if got := l.Ready[1][1]; !got.Ready.Equal(start) {
		t.Errorf("a message that is sent at once is %+v", got)
	}
	if got := l.Delayed[1][1]; !got.Ready.IsZero() || !got.Back.Equal(start.Add(3*time.Second)) || !got.Sent.Equal(start) || !got.Taken.IsZero() || got.Receives != 0 {
		t.Errorf("a delayed message is %+v", got)
	}
	if d := l.Depth; d[queue.Normal] != (queue.Depth{Ready: 2, Delayed: 3}) || d[queue.Low] != (queue.Depth{Ready: 1}) || d[queue.High] != (queue.Depth{}) {
		t.Errorf("depths are %v", d)
	}
	if l = look(t, q, "ours", 1); len(l.Delayed[1]) != 1 || len(l.Ready[1]) != 1 || l.Depth[queue.Normal].Delayed != 3 {
		t.Errorf("the first of each is %+v", l)
	}
	// What was delayed is ready since its delay ended, whenever somebody looks.
	now = start.Add(2 * time.Second)
	if l = look(t, q, "ours", 10); len(l.Ready[1]) != 3 || !l.Ready[1][2].Ready.Equal(start.Add(time.Second)) || !l.Ready[1][2].Back.IsZero() {
		t.Errorf("a message whose delay has ended is in %+v", l.Ready[1])
	}
	// Each is what the next delivery says of it, and is not taken by a look.
	taken := take(t, q, time.Minute)
	if l = look(t, q, "ours", 10); len(l.Ready[1])+len(l.Ready[2]) != 0 || l.Depth[queue.Normal] != (queue.Depth{Delayed: 2, Taken: 3}) {
		t.Errorf("after all were taken that could be: %+v", l)
	}
	if h := l.Taken[2][0]; !h.Taken.Equal(now) || !h.Back.Equal(now.Add(time.Minute)) || h.Receives != 1 {
		t.Errorf("a taken message is %+v", h)
	}
	now = start.Add(time.Hour)
	if l = look(t, q, "ours", 10); l.Depth[queue.Normal] != (queue.Depth{Ready: 5}) {
		t.Errorf("messages that were handed out and not settled: %v", l.Depth)
	}
	if l.Ready[2][0].Receives != 1 || !l.Ready[2][0].Taken.IsZero() || !l.Ready[2][0].Back.IsZero() || !l.Ready[2][0].Ready.Equal(start.Add(2*time.Second+time.Minute)) {
		t.Errorf("a message that came back is %+v", l.Ready[2][0])
	}
	if _, err := q.Delete(t.Context(), taken[:8]...); err != nil {
		t.Fatal(err)
	}
	if l = look(t, q, "nobody", 10); l.Depth[queue.Normal] != (queue.Depth{}) || len(l.Ready[1]) != 0 {
		t.Errorf("a group that has nothing has %+v", l)
	}
	for _, most := range []int{0, queue.MaxLook + 1} {
		if _, err := q.Look(t.Context(), "ours", most); len(invalid.All(err)) != 1 {
			t.Errorf("%d at most: %v", most, err)
		}
	}
	_ = q.Close()
	if _, err := q.Look(t.Context(), "ours", 10); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("a closed queue shows %v", err)
	}
}

// TestTakenMessagesAreShownAsTheyWereTaken: of more than are looked at, those that were taken first come first, whoever keeps them for longer.
func TestTakenMessagesAreShownAsTheyWereTaken(t *testing.T) {
	const many = 1001
	now := time.Unix(1_000, 0)
	q := local.New(local.Config{Now: func() time.Time { return now }})
	for i := range many {
		send(t, q, queue.Normal, queue.Outgoing{Body: fmt.Appendf(nil, "%d", i), Group: "ours"})
	}
	var first queue.Message
	for i := range many {
		now = now.Add(time.Millisecond)
		m := receive(t, q, 1, 0, time.Hour)[0]
		if i == 0 {
			first = m
		}
	}
	if _, err := q.Extend(t.Context(), 2*time.Hour, first); err != nil {
		t.Fatal(err)
	}
	l := look(t, q, "ours", 2)
	if got := bodies(l.Taken[1]); !slices.Equal(got, []string{"0", "1"}) || !l.Taken[1][0].Back.Equal(now.Add(2*time.Hour)) {
		t.Errorf("taken first are %q: %+v", got, l.Taken[1])
	}
	// One that is taken back after its visibility has ended stands where it stood.
	if _, err := q.Extend(t.Context(), 0, first); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Extend(t.Context(), 2*time.Hour, first); err != nil {
		t.Fatal(err)
	}
	if got := bodies(look(t, q, "ours", 2).Taken[1]); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("after one was taken back, taken first are %q", got)
	}
	// Extended, it comes back when that is over, after all others.
	now = now.Add(time.Hour)
	if d := look(t, q, "ours", 1).Depth[queue.Normal]; d != (queue.Depth{Ready: many - 1, Taken: 1}) {
		t.Errorf("after an hour: %+v", d)
	}
}

// TestALookSaysHowManyDelayedMessagesItPutInOrder: 1000 are all, of one more it says so.
func TestALookSaysHowManyDelayedMessagesItPutInOrder(t *testing.T) {
	q := local.New(local.Config{Now: func() time.Time { return time.Unix(1_000, 0) }})
	for i := range 1000 {
		send(t, q, queue.Low, queue.Outgoing{Body: fmt.Appendf(nil, "%d", i), Group: "ours", Delay: time.Duration(1000-i%1000) * time.Millisecond})
	}
	if l := look(t, q, "ours", 1); l.SortedOf != 0 || string(l.Delayed[2][0].Body) != "999" {
		t.Errorf("of 1000: %d were looked at, %+v", l.SortedOf, l.Delayed[2])
	}
	send(t, q, queue.Low, queue.Outgoing{Body: []byte("soon"), Group: "ours", Delay: 1})
	if l := look(t, q, "ours", 1); l.SortedOf != 1000 || string(l.Delayed[2][0].Body) != "999" {
		t.Errorf("of 1001: %d were looked at, %+v", l.SortedOf, l.Delayed[2])
	}
}

// TestLooksAgreeWithTheQueue: whatever is done, what the groups have is what the queue has, and the order told is that of the next deliveries.
func TestLooksAgreeWithTheQueue(t *testing.T) {
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1_000, 0)
		q := local.New(local.Config{Now: func() time.Time { return now }})
		groups := []string{"a", "b", "c"}
		var held []queue.Message
		for n := range 400 {
			switch p := queue.Priorities[draw.IntN(3)]; draw.IntN(5) {
			case 0, 1:
				send(t, q, p, queue.Outgoing{Body: fmt.Appendf(nil, "%d", n), Group: groups[draw.IntN(3)], Delay: time.Duration(draw.IntN(3)) * time.Second})
			case 2:
				held = append(held, receive(t, q, 1+draw.IntN(3), 0, time.Duration(draw.IntN(4))*time.Second)...)
			case 3:
				if len(held) > 0 {
					i := draw.IntN(len(held))
					if draw.IntN(2) == 0 {
						_, _ = q.Delete(t.Context(), held[i])
					} else {
						_, _ = q.Extend(t.Context(), time.Duration(draw.IntN(3))*time.Second, held[i])
					}
				}
			default:
				now = now.Add(time.Duration(draw.IntN(1500)) * time.Millisecond)
			}
			all, err := q.Depth(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sum := map[queue.Priority]queue.Depth{}
			for _, group := range groups {
				l := look(t, q, group, queue.MaxLook)
				for rank, p := range queue.Priorities {
					d, s := l.Depth[p], sum[p]
					if int(d.Ready) != len(l.Ready[rank]) || int(d.Delayed) != len(l.Delayed[rank]) || int(d.Taken) != len(l.Taken[rank]) {
						t.Fatalf("seed %d, step %d: %s of %s has %v and shows %v", seed, n, p, group, d, l)
					}
					sum[p] = queue.Depth{Ready: s.Ready + d.Ready, Delayed: s.Delayed + d.Delayed, Taken: s.Taken + d.Taken}
				}
			}
			for _, p := range queue.Priorities {
				if sum[p] != all[p] {
					t.Fatalf("seed %d, step %d: the groups have %v of %s, the queue %v", seed, n, sum[p], p, all[p])
				}
			}
		}
		want := map[string][3][]string{}
		for _, group := range groups {
			l := look(t, q, group, queue.MaxLook)
			var lines [3][]string
			for rank := range lines {
				lines[rank] = bodies(l.Ready[rank])
			}
			want[group] = lines
		}
		for _, m := range take(t, q, time.Hour) {
			rank, found := m.Priority.Rank(), false
			for _, group := range groups {
				if lines := want[group]; len(lines[rank]) > 0 && lines[rank][0] == string(m.Body) {
					lines[rank] = lines[rank][1:]
					want[group], found = lines, true
				}
			}
			if !found {
				t.Fatalf("seed %d: %s of %s comes next, and is first of no line: %v", seed, m.Body, m.Priority, want)
			}
		}
	}
}
