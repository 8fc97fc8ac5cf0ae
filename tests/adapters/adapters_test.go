//go:build emulators

package adapters

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	drawn "github.com/belfry-scheduler/belfry/tests/process"
)

func atMostOnce(d *job.Definition) { d.Guarantee = job.AtMostOnce }

// TestP2_P5_P9_Fault01_Fault02_AThrottledStoreThatLosesAnswers has one request of six go wrong: refused for load, done without an
// answer, lost without one. Nothing that was accepted is lost, one key gives one run, and at most once stays so.
func TestP2_P5_P9_Fault01_Fault02_AThrottledStoreThatLosesAnswers(t *testing.T) {
	rng, luck := rand.New(rand.NewPCG(drawn.Seed(t), 1)), sync.Mutex{}
	draw := func() int {
		luck.Lock()
		defer luck.Unlock()
		return rng.IntN(100)
	}
	var went [3]atomic.Int64
	var begun atomic.Bool // a process that is refused as it begins ends, and is for its host to begin again
	r := newRig(t, faults{store: func(_ context.Context, c faulty.Call) faulty.Fault {
		if !begun.Load() {
			return faulty.Fault{}
		}
		writes := c.Method == faulty.Write || c.Method == faulty.WriteEach
		switch n := draw(); {
		case n < 6:
			went[0].Add(1)
			return faulty.Fault{Refuse: store.ErrThrottled}
		case n < 12 && writes:
			went[1].Add(1)
			return faulty.Fault{Lose: store.ErrUnknown}
		case n < 16 && writes:
			went[2].Add(1)
			return faulty.Fault{Refuse: store.ErrUnknown}
		}
		return faulty.Fault{}
	}}, true, true)
	begun.Store(true)
	end := r.now().Add(12 * time.Second).Truncate(time.Second)
	r.job("fires", func(d *job.Definition) {
		d.Schedule = every(time.Second)
		d.Schedule.End = &end
	})
	r.job("asked", nil)
	r.job("once", atMostOnce)
	r.trigger("asked", 20)
	r.trigger("once", 20)
	r.until("fires have been claimed under faults", func() bool { return len(r.runs("fires")) >= 8 })
	r.mend()
	r.later()
	for _, name := range []string{"asked", "once"} {
		for _, one := range r.ended(name, 20) {
			if one.State != run.Succeeded && (name == "asked" || one.State != run.Unknown) {
				t.Errorf("%s ended as %s: %s", one.ID, one.State, one.Reason)
			}
		}
		if n := len(r.runs(name)); n != 20 {
			t.Errorf("20 keys gave %d runs of %s", n, name)
		}
	}
	calls := r.called()
	for _, one := range r.runs("once") {
		if n := calls[one.ID.String()]; n > 1 || n == 0 && one.State == run.Succeeded {
			t.Errorf("%s, at most once and %s, was called %d times", one.ID, one.State, n)
		}
	}
	fires := r.ended("fires", 8)
	first, last := fires[len(fires)-1].ID.Nominal, fires[0].ID.Nominal
	if want := int((last-first)/1000) + 1; len(fires) != want {
		t.Errorf("%d runs between %d and %d, want one a second: %d", len(fires), first, last, want)
	}
	t.Logf("throttled %d, done without an answer %d, lost without one %d", went[0].Load(), went[1].Load(), went[2].Load())
}

// TestP10_Fault20_Fault25_DoubledAndLostMessages has the queue double every second message and lose every third. The clock goes on to
// where sweeps and checks look: each run has run, and once.
func TestP10_Fault20_Fault25_DoubledAndLostMessages(t *testing.T) {
	var n, lost, doubled atomic.Int64
	var sound atomic.Bool
	r := newRig(t, faults{queue: queuefaulty.Hooks{Send: func(queue.Priority, queue.Outgoing) queuefaulty.Fate {
		switch k := n.Add(1); {
		case sound.Load():
		case k%3 == 0:
			lost.Add(1)
			return queuefaulty.Fate{Drop: true}
		case k%2 == 0:
			doubled.Add(1)
			return queuefaulty.Fate{Double: true}
		}
		return queuefaulty.Fate{}
	}}}, true, true)
	const runs = 30
	r.job("asked", nil)
	r.trigger("asked", runs)
	r.ended("asked", runs-int(lost.Load()))
	sound.Store(true)
	r.later()
	for _, one := range r.ended("asked", runs) {
		if calls := r.called()[one.ID.String()]; one.State != run.Succeeded || calls != 1 {
			t.Errorf("%s is %s after %d calls, want succeeded after one", one.ID, one.State, calls)
		}
	}
	if lost.Load() == 0 || doubled.Load() == 0 {
		t.Errorf("%d messages were lost and %d doubled, want some", lost.Load(), doubled.Load())
	}
}

// TestP5_P6_Fault34_Fault36_AWorkerIsKilledInTheMiddleOfABatch kills the process with several runs under way. Those at least once run
// again elsewhere and do not pay for it with their attempts; of those at most once that were called nobody knows the end.
func TestP5_P6_Fault34_Fault36_AWorkerIsKilledInTheMiddleOfABatch(t *testing.T) {
	r := newRig(t, faults{}, false, true)
	r.job("again", nil)
	r.job("once", atMostOnce)
	var asking sync.WaitGroup
	for _, name := range []string{"again", "once"} {
		asking.Go(func() { r.trigger(name, 6) })
	}
	asking.Wait()
	select {
	case <-r.child("works"):
	case <-time.After(patience):
		t.Fatal("the worker was not killed")
	}
	before := r.called()
	if len(before) < 4 {
		t.Fatalf("%d runs were under way, want 4 or more", len(before))
	}
	second, err := r.open(t.Context(), r.now, faults{}, true, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- second.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	for _, one := range r.ended("again", 6) {
		if one.State != run.Succeeded || one.Failures != 0 {
			t.Errorf("%s is %s after %d failures, want succeeded after none", one.ID, one.State, one.Failures)
		}
	}
	for _, one := range r.ended("once", 6) {
		calls := r.called()[one.ID.String()]
		// A run whose start was written, and whose call was not made any more, is unknown too: nobody can tell.
		sound := one.State == run.Unknown && calls <= 1 || one.State == run.Succeeded && calls == 1 && before[one.ID.String()] == 0
		if !sound {
			t.Errorf("%s is %s after %d calls, %d of them before the kill", one.ID, one.State, calls, before[one.ID.String()])
		}
	}
}

// TestP2_Fault11_Fault12_ATickIsKilledBetweenClaimAndSend kills the only tick where it has claimed and not sent. Another goes on when its
// lease is over: each fire runs, once.
func TestP2_Fault11_Fault12_ATickIsKilledBetweenClaimAndSend(t *testing.T) {
	r := newRig(t, faults{}, true, false)
	end := r.now().Add(20 * time.Second).Truncate(time.Second)
	r.job("fires", func(d *job.Definition) {
		d.Schedule = every(2 * time.Second)
		d.Schedule.End = &end
	})
	select {
	case <-r.child("ticks"):
	case <-time.After(patience):
		t.Fatal("the tick was not killed")
	}
	standing := r.runs("fires")
	if len(standing) == 0 || len(r.called()) > 0 {
		t.Fatalf("%d runs were claimed and %d called, want some and none", len(standing), len(r.called()))
	}
	second, err := r.open(t.Context(), r.now, faults{}, false, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- second.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	fires := r.ended("fires", 9)
	calls := r.called()
	for _, one := range fires {
		if one.State != run.Succeeded || calls[one.ID.String()] != 1 {
			t.Errorf("%s is %s after %d calls, want succeeded after one", one.ID, one.State, calls[one.ID.String()])
		}
	}
}

// TestP6_Fault28_Fault34_APoisonMessage has a payload that kills each worker that runs it, and a message that nobody can read. The one
// is dead after so many workers, and its neighbours run. The other holds nothing up.
func TestP6_Fault28_Fault34_APoisonMessage(t *testing.T) {
	r := newRig(t, faults{}, false, true)
	endpoint := os.Getenv("BELFRY_TEST_SQS")
	client := awssqs.NewFromConfig(awsConfig(), func(o *awssqs.Options) { o.BaseEndpoint = &endpoint })
	at, err := client.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String(r.Name + "-normal")})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"not a run", "bm90IGEgcnVuIGVpdGhlcg=="} {
		if _, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: at.QueueUrl, MessageBody: &body, MessageGroupId: aws.String(tenant)}); err != nil {
			t.Fatal(err)
		}
	}
	r.job("poison", nil)
	r.job("neighbour", nil)
	r.trigger("poison", 1)
	r.trigger("neighbour", 8)
	killed := 0
	var over atomic.Bool
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.ended("poison", 1)
		over.Store(true)
	}()
	for !over.Load() && killed < 6 { // whoever runs a service starts it again
		ended := r.child("eats")
		select {
		case <-ended:
			killed++
		case <-watched:
		}
	}
	<-watched
	if poison := r.runs("poison"); len(poison) != 1 || poison[0].State != run.Dead || poison[0].Crashes != 3 || poison[0].Failures != 0 {
		t.Errorf("the poison is %s, want dead after 3 crashes and no failure", fmt.Sprint(poison))
	}
	for _, one := range r.ended("neighbour", 8) {
		if one.State != run.Succeeded || one.Failures != 0 {
			t.Errorf("%s is %s after %d failures, want succeeded", one.ID, one.State, one.Failures)
		}
	}
}
