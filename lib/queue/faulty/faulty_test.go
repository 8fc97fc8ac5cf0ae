package faulty_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
)

var errLost = errors.New("the answer was lost")

func bodies(t *testing.T, q queue.Queue, wait time.Duration) []string {
	t.Helper()
	got, err := q.Receive(t.Context(), queue.MaxBatch, wait, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range got {
		all = append(all, string(m.Body))
	}
	slices.Sort(all)
	return all
}

func TestSendsAreDroppedDoubledDelayedAndRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := faulty.Wrap(local.New(local.Config{}), faulty.Hooks{
			Send: func(_ queue.Priority, m queue.Outgoing) faulty.Fate {
				return map[string]faulty.Fate{
					"drop":    {Drop: true},
					"double":  {Double: true},
					"delay":   {Delay: 10 * time.Second},
					"refuse":  {Drop: true, Err: queue.ErrFull},
					"unknown": {Err: errLost},
				}[string(m.Body)]
			},
		})
		var batch []queue.Outgoing
		for _, body := range []string{"drop", "double", "delay", "refuse", "unknown", "fine"} {
			batch = append(batch, queue.Outgoing{Body: []byte(body)})
		}
		errs, err := q.Send(t.Context(), queue.Normal, batch...)
		if want := []error{nil, nil, nil, queue.ErrFull, errLost, nil}; err != nil || !slices.Equal(errs, want) {
			t.Fatalf("send gave %v, %v, want %v", errs, err, want)
		}
		if got, want := bodies(t, q, 0), []string{"double", "double", "fine", "unknown"}; !slices.Equal(got, want) {
			t.Fatalf("received %q, want %q", got, want)
		}
		start := time.Now()
		if got := bodies(t, q, queue.MaxWait); !slices.Equal(got, []string{"delay"}) || time.Since(start) != 10*time.Second {
			t.Fatalf("received %q after %v, want the delayed one after 10s", got, time.Since(start))
		}
	})
}

func TestADeliveryLostOnTheWayCountsAsReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := faulty.Wrap(local.New(local.Config{}), faulty.Hooks{
			Receive: func(m queue.Message) faulty.Fate { return faulty.Fate{Drop: m.Receives == 1, Double: m.Receives == 2} },
		})
		if _, err := q.Send(t.Context(), queue.Low, queue.Outgoing{Body: []byte("work")}); err != nil {
			t.Fatal(err)
		}
		if got := bodies(t, q, 0); len(got) != 0 {
			t.Fatalf("received %q, want it lost", got)
		}
		time.Sleep(time.Minute)
		got, err := q.Receive(t.Context(), 2, 0, time.Minute)
		if err != nil || len(got) != 2 || got[0].Receives != 2 || got[0].Receipt != got[1].Receipt {
			t.Fatalf("received %v, %v, want the second delivery twice", got, err)
		}
	})
}

func TestADeleteOrAnExtendMayBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lose := func(queue.Message) faulty.Fate { return faulty.Fate{Drop: true, Err: errLost} }
		q := faulty.Wrap(local.New(local.Config{}), faulty.Hooks{Delete: lose, Extend: lose})
		if _, err := q.Send(t.Context(), queue.Low, queue.Outgoing{Body: []byte("work")}); err != nil {
			t.Fatal(err)
		}
		got, err := q.Receive(t.Context(), 1, 0, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []func() ([]error, error){
			func() ([]error, error) { return q.Delete(t.Context(), got...) },
			func() ([]error, error) { return q.Extend(t.Context(), time.Hour, got...) },
		} {
			if errs, err := call(); err != nil || !errors.Is(errs[0], errLost) {
				t.Fatalf("gave %v, %v, want the lost answer", errs, err)
			}
		}
		time.Sleep(time.Minute)
		if again := bodies(t, q, 0); len(again) != 1 {
			t.Fatal("the message did not come back at the end of its first visibility")
		}
	})
}
