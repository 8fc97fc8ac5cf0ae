package ordering_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/plan/ordering"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func play(t *testing.T, q wire.OrderQuestion) wire.OrderPlan {
	t.Helper()
	p, err := ordering.Play(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func length(text string) schedule.Duration {
	d, err := schedule.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// questions are loads of every kind.
func questions() []wire.OrderQuestion {
	mixed := [3]float64{0: 0.3, 2: 0.3}
	return []wire.OrderQuestion{
		{Workers: 1, Rate: 100, Messages: 1},
		{Workers: 1, Rate: 1_000_000, Messages: 200, Shares: mixed},
		{Workers: 3, Rate: 20, Messages: 300, Shares: mixed, Delayed: 0.6, Delay: length("5s"), Seed: 4},
		{Workers: 2, Rate: 30, Messages: 300, Shares: mixed, Delayed: 1, Delay: length("15m"), Service: wire.QueueService{Kind: "exponential", Mean: length("1s")}},
		{Workers: 100, Rate: 1000, Messages: ordering.MostMessages, Shares: [3]float64{2: 1}, Service: wire.QueueService{Kind: "lognormal", Mean: length("1h"), P99: length("14h")}, Seed: math.MaxUint64},
		{Workers: 1, Rate: 0.001, Messages: 5},
	}
}

// TestEachMessageGoesItsWay: each is sent, ready where it was delayed, taken by a worker that has room, and ended, in this order and once.
func TestEachMessageGoesItsWay(t *testing.T) {
	for i, q := range questions() {
		p := play(t, q)
		q = p.Question
		type way struct {
			state, priority string
			ready           float64
			worker          int
		}
		ways := make([]way, q.Messages+1)
		busy := map[int]int{}
		last := 0.0
		waits := p.Ranks
		for n, e := range p.Events {
			m := &ways[e.Message]
			wrong := func(what string) { t.Fatalf("question %d, event %d: %+v of %+v: %s", i, n, e, *m, what) }
			if e.At < last {
				wrong("time goes back")
			}
			last = e.At
			if m.priority != "" && m.priority != e.Priority {
				wrong("another priority")
			}
			switch {
			case e.Event == wire.OrderSent && m.state == "":
				*m = way{state: "ready", priority: e.Priority, ready: e.At}
				if e.Due != nil {
					m.state, m.ready = "delayed", *e.Due
					if *e.Due <= e.At || *e.Due > e.At+q.Delay.Std().Seconds()+1e-6 {
						wrong("its delay")
					}
				}
			case e.Event == wire.OrderReady && m.state == "delayed" && e.At == m.ready:
				m.state = "ready"
			case e.Event == wire.OrderTaken && m.state == "ready" && e.Worker >= 1 && e.Worker <= q.Workers:
				m.state, m.worker = "taken", e.Worker
				if busy[e.Worker]++; busy[e.Worker] > 1 {
					wrong("its worker has too many")
				}
				w := &waits[queue.Priority(e.Priority).Rank()]
				w.Messages--
				w.Mean -= (e.At - m.ready) / float64(p.Ranks[queue.Priority(e.Priority).Rank()].Messages)
				if e.At-m.ready > w.Max+1e-9 {
					wrong("a wait longer than the longest")
				}
			case e.Event == wire.OrderEnded && m.state == "taken" && e.Worker == m.worker:
				m.state = "ended"
				busy[e.Worker]--
			default:
				wrong("not in this state")
			}
		}
		for number, m := range ways[1:] {
			if m.state != "ended" {
				t.Errorf("question %d: message %d is %s at the end", i, number+1, m.state)
			}
		}
		for rank, w := range waits {
			if w.Messages != 0 || math.Abs(w.Mean) > 1e-6 {
				t.Errorf("question %d: the waits of rank %d are not those of its messages: %+v is left", i, rank, w)
			}
		}
		if last != p.Lasts {
			t.Errorf("question %d: it lasts %g, and the last event is at %g", i, p.Lasts, last)
		}
		if !reflect.DeepEqual(p, play(t, q)) {
			t.Errorf("question %d: another answer the second time", i)
		}
	}
}

// TestTheOrderIsThatOfTheQueue: the one taken is the first in line of the priority whose turn it is, or of the highest that has something. A delayed
// message stands in line when the queue is next asked something after it is ready; one that is sent at once by then goes before it.
func TestTheOrderIsThatOfTheQueue(t *testing.T) {
	for i, q := range questions() {
		lines := map[string][]int{}
		var unseen []wire.OrderEvent // ready, and not yet in line
		see := func() {
			for _, e := range unseen {
				lines[e.Priority] = append(lines[e.Priority], e.Message)
			}
			unseen = nil
		}
		takes := 0
		for n, e := range play(t, q).Events {
			switch {
			case e.Event == wire.OrderReady:
				unseen = append(unseen, e)
			case e.Event == wire.OrderSent:
				see()
				if e.Due == nil {
					lines[e.Priority] = append(lines[e.Priority], e.Message)
				}
			case e.Event == wire.OrderTaken:
				see()
				turn := string(queue.Priorities[queue.Turns[takes%len(queue.Turns)]])
				takes++
				from := turn
				for _, p := range queue.Priorities {
					if len(lines[from]) == 0 || from != turn {
						if from = string(p); len(lines[from]) > 0 {
							break
						}
					}
				}
				if e.Turn != turn || e.Priority != from || lines[from][0] != e.Message {
					t.Fatalf("question %d, event %d: %+v, want the turn of %s and the first of %s in %v", i, n, e, turn, from, lines)
				}
				lines[from] = lines[from][1:]
			}
		}
	}
}

func TestLowIsTakenWhileHighIsReady(t *testing.T) {
	p := play(t, wire.OrderQuestion{Workers: 1, Rate: 1_000_000, Messages: 400, Shares: [3]float64{0: 0.8, 2: 0.1}})
	taken := map[string]int{}
	for _, e := range p.Events {
		if e.Event == wire.OrderTaken {
			if taken[e.Priority]++; taken["high"]+taken["normal"]+taken["low"] == 160 {
				break
			}
		}
	}
	if taken["low"] < 9 || taken["normal"] < 28 || taken["high"] < 118 {
		t.Errorf("of 160 taken from a full queue %v, want about 120 high, 30 normal and 10 low", taken)
	}
}

func TestAWrongQuestionIsRefusedByItsFields(t *testing.T) {
	fine := wire.OrderQuestion{Workers: 2, Rate: 5}
	for _, c := range []struct {
		change func(*wire.OrderQuestion)
		field  string
	}{
		{func(q *wire.OrderQuestion) { q.Workers = 0 }, "workers"},
		{func(q *wire.OrderQuestion) { q.Workers = ordering.MostWorkers + 1 }, "workers"},
		{func(q *wire.OrderQuestion) { q.Messages = ordering.MostMessages + 1 }, "messages"},
		{func(q *wire.OrderQuestion) { q.Messages = -1 }, "messages"},
		{func(q *wire.OrderQuestion) { q.Rate = 0 }, "arrivals"},
		{func(q *wire.OrderQuestion) { q.Rate = math.NaN() }, "arrivals"},
		{func(q *wire.OrderQuestion) { q.Rate = 1e9 }, "arrivals"},
		{func(q *wire.OrderQuestion) { q.Delayed = 1.1 }, "delayed"},
		{func(q *wire.OrderQuestion) { q.Delayed = math.NaN() }, "delayed"},
		{func(q *wire.OrderQuestion) { q.Delay = -1 }, "longest_delay"},
		{func(q *wire.OrderQuestion) { q.Delay = length("16m") }, "longest_delay"},
		{func(q *wire.OrderQuestion) { q.Shares[0] = -0.1 }, "high"},
		{func(q *wire.OrderQuestion) { q.Shares[2] = 2 }, "low"},
		{func(q *wire.OrderQuestion) { q.Shares = [3]float64{0: 0.6, 2: 0.5} }, "high"},
		{func(q *wire.OrderQuestion) { q.Service.Kind = "normal" }, "distribution"},
		{func(q *wire.OrderQuestion) { q.Service.Mean = length("2h") }, "duration"},
		{func(q *wire.OrderQuestion) { q.Service.Mean = -1 }, "duration"},
		{func(q *wire.OrderQuestion) { q.Service.P99 = length("1s") }, "p99"},
	} {
		q := fine
		c.change(&q)
		_, err := ordering.Play(t.Context(), q)
		if wrong := invalid.All(err); len(wrong) != 1 || wrong[0].Field != c.field {
			t.Errorf("%+v: %v, want %s refused", q, err, c.field)
		}
	}
	if p := play(t, fine); p.Question.Messages != 100 || p.Question.Delay.Std() != 10*time.Second || p.Question.Service.Mean.Std() != 200*time.Millisecond || p.Question.Seed != 1 || p.Question.Shares[1] != 1 {
		t.Errorf("the usual is %+v", p.Question)
	}
}

func TestAPlayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ordering.Play(ctx, wire.OrderQuestion{Workers: 1, Rate: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
