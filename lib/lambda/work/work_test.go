package work

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func succeed(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }

func within(t *testing.T, call target.Func, test func(t *testing.T, s *stack)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newStack(t, call)) })
}

// All runs of a batch are under way at once, whatever its size.
func TestABatchRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 25
		var together sync.WaitGroup
		together.Add(runs)
		s := newStack(t, func(context.Context, target.Call) (target.Result, error) {
			together.Done()
			together.Wait() // for ever, if one of them has to wait for another
			return target.Result{}, nil
		})
		var all []run.Run
		for range runs {
			all = append(all, s.run())
		}
		failed, messages := s.mapping(runs)
		if len(failed) != 0 || messages != runs {
			t.Errorf("%d of %d messages failed", len(failed), messages)
		}
		for _, r := range all {
			s.want(r, run.Succeeded, 1)
		}
		if _, left := s.depth(); left != 0 {
			t.Errorf("%d messages are left", left)
		}
	})
}

// Lambda wants a list. Null would be taken for a failure of all, or for an error.
func TestAnAnswerWithoutFailuresIsAnEmptyList(t *testing.T) {
	within(t, succeed, func(t *testing.T, s *stack) {
		s.run()
		event, _ := s.event(10)
		for name, one := range map[string]events.SQSEvent{"all done": event, "no message": {}} {
			answer, err := s.invoke(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := json.Marshal(answer); err != nil || string(text) != `{"batchItemFailures":[]}` {
				t.Errorf("%s: %s, %v", name, text, err)
			}
		}
	})
}

// What is to be tried again stays in the queue, hidden until then; the rest of the batch is gone.
func TestFault23_ABatchThatFailsInPart(t *testing.T) {
	var fails atomic.Int64
	call := func(_ context.Context, c target.Call) (target.Result, error) {
		if c.Job == "j2" && fails.Add(1) < 3 {
			return target.Result{}, errors.New("not yet")
		}
		return target.Result{}, nil
	}
	within(t, call, func(t *testing.T, s *stack) {
		patient := func(d *job.Definition) {
			d.Retry = job.Retry{MaxAttempts: 5, Initial: schedule.Duration(20 * time.Second), Factor: 1, Max: schedule.Duration(20 * time.Second)}
		}
		first, second, third := s.run(patient), s.run(patient), s.run(patient)
		for attempt := 1; attempt < 3; attempt++ {
			failed, _ := s.mapping(10)
			if len(failed) != 1 {
				t.Fatalf("attempt %d: failures %v, want the one of the second run", attempt, failed)
			}
			s.want(second, run.Retrying, attempt)
			time.Sleep(21 * time.Second)
		}
		if failed, messages := s.mapping(10); len(failed) != 0 || messages != 1 {
			t.Errorf("at last %d of %d messages failed", len(failed), messages)
		}
		s.want(first, run.Succeeded, 1)
		s.want(second, run.Succeeded, 3)
		s.want(third, run.Succeeded, 1)
	})
}

// What cannot be finished in what is left of an invocation goes back, at least once to be run again, at most once as unknown, and
// everything is written before the function would be killed.
func TestP5_Fault38_AnInvocationEndsBeforeItsTimeout(t *testing.T) {
	stubborn := func(ctx context.Context, _ target.Call) (target.Result, error) {
		<-ctx.Done()
		return target.Result{}, ctx.Err()
	}
	within(t, stubborn, func(t *testing.T, s *stack) {
		s.timeout = 2 * time.Minute
		short := func(d *job.Definition) { d.Timeout = schedule.Duration(100 * time.Second) } // just fits
		again := s.run(short)
		once := s.run(short, func(d *job.Definition) { d.Guarantee, d.Retry.MaxAttempts = job.AtMostOnce, 1 })
		late := s.run(short)
		event, _ := s.event(10)
		// The process is told to stop while they run, as Lambda does with one that it takes away.
		ctx, cancel := context.WithTimeout(t.Context(), s.timeout)
		time.AfterFunc(30*time.Second, cancel)
		began := time.Now()
		answer, err := s.invoke(ctx, event)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 31*time.Second {
			t.Errorf("it took %s", took)
		}
		if len(answer.BatchItemFailures) != 2 {
			t.Errorf("failures %v, want those of the two runs at least once", answer.BatchItemFailures)
		}
		s.want(again, run.Queued, 1)
		s.want(late, run.Queued, 1)
		s.want(once, run.Unknown, 1)
		if ready, _ := s.depth(); ready != 2 {
			t.Errorf("%d messages can be had at once, want 2", ready)
		}
	})
}

// A run that may take longer than the function lives is started by none: it would be begun again and again.
func TestARunLongerThanTheFunctionIsNotStarted(t *testing.T) {
	within(t, succeed, func(t *testing.T, s *stack) {
		s.timeout = time.Minute
		long := s.run(func(d *job.Definition) { d.Timeout = schedule.Duration(10 * time.Minute) })
		short := s.run(func(d *job.Definition) { d.Timeout = schedule.Duration(30 * time.Second) })
		if failed, _ := s.mapping(10); len(failed) != 1 {
			t.Errorf("failures %v, want the long one", failed)
		}
		s.want(long, run.Queued, 0)
		s.want(short, run.Succeeded, 1)
		if ready, all := s.depth(); ready != 0 || all != 1 {
			t.Errorf("%d of %d messages can be had at once, want it to wait", ready, all)
		}
	})
}

// A message whose visibility was extended while its run went on is deleted when that has ended, though the batch goes on: else it
// would come again.
func TestFault35_ALongRunInABatch(t *testing.T) {
	call := func(ctx context.Context, c target.Call) (target.Result, error) {
		d := map[string]time.Duration{"j1": time.Second, "j2": 45 * time.Second, "j3": 10 * time.Minute}[c.Job]
		select {
		case <-time.After(d):
			return target.Result{}, nil
		case <-ctx.Done():
			return target.Result{}, ctx.Err()
		}
	}
	within(t, call, func(t *testing.T, s *stack) {
		long := func(d *job.Definition) { d.Timeout = schedule.Duration(14 * time.Minute) }
		runs := []run.Run{s.run(long), s.run(long), s.run(long)}
		done := make(chan int)
		go func() {
			failed, _ := s.mapping(10)
			done <- len(failed)
		}()
		time.Sleep(5 * time.Minute) // the third goes on, and has been renewed many times
		if ready, all := s.depth(); ready != 0 || all != 2 {
			t.Errorf("%d of %d messages can be had at once, want none of two: that of the long run, and the first, which Lambda deletes", ready, all)
		}
		if failed := <-done; failed != 0 {
			t.Errorf("%d failures", failed)
		}
		for _, r := range runs {
			s.want(r, run.Succeeded, 1)
		}
		if _, all := s.depth(); all != 0 {
			t.Errorf("%d messages are left", all)
		}
	})
}

// An event that comes twice, or whose function was killed before its answer, starts nothing twice.
func TestFault20_ADoubledEvent(t *testing.T) {
	var calls atomic.Int64
	within(t, func(context.Context, target.Call) (target.Result, error) { calls.Add(1); return target.Result{}, nil }, func(t *testing.T, s *stack) {
		r := s.run()
		event, _ := s.event(10)
		for range 3 {
			if answer, err := s.invoke(t.Context(), event); err != nil || len(answer.BatchItemFailures) != 0 {
				t.Fatalf("%v, %v", answer, err)
			}
		}
		s.want(r, run.Succeeded, 1)
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1", calls.Load())
		}
	})
}

func TestTheQueueTellsPoolAndPriority(t *testing.T) {
	within(t, succeed, func(t *testing.T, s *stack) {
		s.run(func(d *job.Definition) { d.Timeout = schedule.Duration(time.Hour) }) // comes back: the queue hears of it
		event, _ := s.event(10)
		event.Records[0].EventSourceARN = strings.Replace(normalARN, "-normal", "-high", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.invoke(ctx, event); err != nil {
			t.Fatal(err)
		}
		if len(s.told.extends) != 1 || s.told.extends[0].Priority != queue.High {
			t.Errorf("the queue was told of %+v, want one message of high priority", s.told.extends)
		}
		for arn, want := range map[string]string{
			"arn:aws:sqs:eu-west-1:123456789012:prod-belfry-gpu-high": `knows no pool "gpu"`,
			"arn:aws:sqs:eu-west-1:123456789012:another-default-high": "want one of prod-belfry-POOL-PRIORITY",
			"arn:aws:sqs:eu-west-1:123456789012:prod-belfry-default":  "want one of prod-belfry-POOL-PRIORITY",
			"arn:aws:sqs:eu-west-1:123456789012:prod-belfry-high":     "want one of prod-belfry-POOL-PRIORITY",
			"": "want one of prod-belfry-POOL-PRIORITY",
		} {
			event.Records[0].EventSourceARN = arn
			if _, err := s.invoke(t.Context(), event); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that says %s", arn, err, want)
			}
		}
	})
}

// Metrics and traces are written before the answer, after which the process is frozen.
func TestEachInvocationEndsWithItsHooks(t *testing.T) {
	within(t, succeed, func(t *testing.T, s *stack) {
		ends := 0
		s.AtEnd(func(context.Context) error { ends++; return errors.New("nobody took them") })
		r := s.run()
		s.mapping(10)
		s.want(r, run.Succeeded, 1)
		if _, err := s.invoke(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{EventSourceARN: "another"}}}); err == nil {
			t.Error("a foreign event was accepted")
		}
		if ends != 2 {
			t.Errorf("%d invocations ended with the hook, want 2", ends)
		}
	})
}
