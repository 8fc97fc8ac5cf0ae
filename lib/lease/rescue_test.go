package lease_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// rescue is a Rescue over an office, with what it logs.
type rescue struct {
	*lease.Rescue
	o     *office
	blobs *blob.Bucket
	log   bytes.Buffer
}

func (o *office) rescue() *rescue {
	o.t.Helper()
	r := &rescue{o: o, blobs: blob.New(memblob.OpenBucket(nil))}
	var err error
	if r.Rescue, err = lease.NewRescue(lease.RescueConfig{Dispatch: o.d, Blobs: r.blobs, Metrics: o.metrics,
		Log: slog.New(slog.NewTextHandler(&r.log, nil))}); err != nil {
		o.t.Fatal(err)
	}
	return r
}

// givenUp takes the one message that is in the queue, as the queue does that gives it up.
func (r *rescue) givenUp(wait time.Duration) queue.Message {
	r.o.t.Helper()
	ctx, cancel := context.WithTimeout(r.o.t.Context(), wait)
	defer cancel()
	for {
		got, err := r.o.queue.Receive(ctx, 10, min(wait, queue.MaxWait), time.Minute)
		if err != nil || len(got) > 1 {
			r.o.t.Fatalf("%d messages, %v; want one", len(got), err)
		}
		if len(got) == 1 {
			if _, err := r.o.queue.Delete(ctx, got[0]); err != nil {
				r.o.t.Fatal(err)
			}
			return got[0]
		}
	}
}

func (r *rescue) see(m queue.Message) {
	r.o.t.Helper()
	if err := r.See(r.o.t.Context(), m, 0); err != nil {
		r.o.t.Fatal(err)
	}
}

// waiting is how many messages there are.
func (r *rescue) waiting() int64 {
	r.o.t.Helper()
	depth, err := r.o.queue.Depth(r.o.t.Context())
	if err != nil {
		r.o.t.Fatal(err)
	}
	d := depth[queue.Normal]
	return d.Ready + d.Delayed + d.Taken
}

// What was given up although its run is well goes back to work once. Its workers may have been away.
func TestFault28_ARunThatNoWorkerCanStartIsDead(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		r := o.queued(tenant, anyJob)
		s.see(s.givenUp(time.Second))
		if now := o.read(r); now.State != run.Queued {
			t.Fatalf("given up once it is %s, want it queued", now.State)
		}
		again := s.givenUp(time.Second)
		if message, err := run.DecodeMessage(again.Body); err != nil || message.Returns != 1 {
			t.Fatalf("it came back as %+v, %v; want its first return", message, err)
		}
		s.see(again)
		now := o.read(r)
		if now.State != run.Dead || !strings.Contains(now.Reason, "no worker could start it") || now.Attempt != 0 {
			t.Errorf("given up twice it is %s (%s) after %d attempts, want it dead with the cause", now.State, now.Reason, now.Attempt)
		}
		listed, err := o.store.Get(t.Context(), now.DeadKey())
		if err != nil || !listed[0].Exists() {
			t.Fatalf("it is not listed: %v", err)
		}
		if letter, err := run.DeadLetterFromItem(listed[0]); err != nil || letter.Error != now.Reason {
			t.Errorf("it is listed with %q, %v; want the cause", letter.Error, err)
		}
		if got := o.metrics.Runs.Value("dead"); got != 1 {
			t.Errorf("%d runs counted as dead, want 1", got)
		}
		if got := o.metrics.DeadLetters.Value("dead"); got != 1 {
			t.Errorf("%d dead letters were counted, want 1", got)
		}
		s.see(again) // a doubled message
		if s.waiting() != 0 || o.metrics.DeadLetters.Value("dead") != 1 {
			t.Error("the message of an ended run did something")
		}
	})
}

// What has happened to the run in between counts: it was not these workers that died.
func TestFault21_AMessageGivenUpIsNotItsRunsFault(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		r := o.queued(tenant, func(d *job.Definition) { d.Retry.MaxAttempts = 50 })
		for range 5 {
			s.see(s.givenUp(time.Minute))
			offer := o.take(able("w-1", "f"))
			_, ticket, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
			if err != nil {
				t.Fatal(err)
			}
			now := o.read(r)
			if _, err := o.Finish(t.Context(), tenant, lease.Claim{Run: r.ID, Fence: now.Fence, Holder: me, Ticket: ticket},
				worker.End{Outcome: run.OutcomeHandedBack}); err != nil {
				t.Fatal(err)
			}
		}
		if now := o.read(r); now.State != run.Queued || now.Attempt != 5 {
			t.Errorf("%s after %d attempts, want it queued after 5", now.State, now.Attempt)
		}
	})
}

func TestFault34_ARunWhoseWorkersDieIsDeadByItsCrashes(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		r := o.queued(tenant, anyJob)
		for crash := 1; crash <= dispatch.MaxCrashes; crash++ {
			m := s.givenUp(2 * time.Minute)
			o.killed(r)
			s.see(m) // while the lease runs: whoever gets it next looks again
			if now := o.read(r); now.State != run.Running {
				t.Fatalf("its lease runs, and it is %s", now.State)
			}
			m = s.givenUp(2 * time.Minute)
			s.see(m)
			if now := o.read(r); now.Crashes != crash {
				t.Fatalf("%d crashes, want %d: %+v", now.Crashes, crash, now)
			}
		}
		now := o.read(r)
		if now.State != run.Dead || !strings.Contains(now.Reason, "killed its worker") {
			t.Errorf("%s (%s), want it dead for killing its workers", now.State, now.Reason)
		}
		if s.waiting() != 0 {
			t.Error("a message is left of it")
		}
	})
}

func TestP5_Fault36_AnAtMostOnceRunWhoseMessageWasGivenUp(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		r := o.queued(tenant, once)
		m := s.givenUp(time.Second)
		o.killed(r)
		s.see(m)
		s.see(s.givenUp(2 * time.Minute))
		if now := o.read(r); now.State != run.Unknown || now.Attempt != 1 {
			t.Errorf("%s after %d attempts, want unknown after 1", now.State, now.Attempt)
		}
		if s.waiting() != 0 {
			t.Error("a message is left of it: it could be started again")
		}
	})
}

// A run whose job is to be paused and is damaged has its message go round no longer: nobody who is given it can mend that.
func TestP8_AMessageWaitsForNoJobThatIsDamaged(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		r := o.queued(tenant, anyJob)
		asked := 0
		o.d.PauseJob = func(context.Context, ...run.Run) error {
			asked++
			return fmt.Errorf("job: %w", record.ErrBroken)
		}
		ended := o.read(r).GiveUp(time.Now().UnixMilli(), "it fails", run.Limits{Retention: time.Hour})
		ended.Pauses = true
		o.write(ended.Item(o.d.NewID()))
		s.see(s.givenUp(time.Minute))
		if asked != 1 || s.waiting() != 0 {
			t.Errorf("its job was to be paused %d times, and %d messages are left", asked, s.waiting())
		}
	})
}

// killed starts a run by a worker that is not heard of again.
func (o *office) killed(r run.Run) {
	o.t.Helper()
	now := o.read(r)
	op, err := now.Start("w-dead", time.Now().UnixMilli(), o.d.Lease).Item(rand.Uint64())
	o.write(op, err)
}

// What nobody can read is kept, counted and told of, within bounds. While it cannot be kept it stays where it is.
func TestP11_Fault29_AnUnreadableMessageIsKept(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		body := bytes.Repeat([]byte("not a message "), 1000)
		for range 2 { // doubled
			s.see(queue.Message{Body: body, Receives: 11})
		}
		log := s.log.String()
		_, rest, _ := strings.Cut(log, "blob=")
		key, _, _ := strings.Cut(rest, " ")
		kept, err := s.blobs.Get(t.Context(), blob.NoTenant, strings.Trim(key, `"`))
		if err != nil || !bytes.Equal(kept, body) {
			t.Errorf("under %s are %d bytes, %v; want the message", key, len(kept), err)
		}
		if got := o.metrics.DeadLetters.Value("message"); got != 2 {
			t.Errorf("%d were counted, want 2", got)
		}
		if len(log) > 4<<10 {
			t.Errorf("%d bytes of log for two messages", len(log))
		}
		if err := s.blobs.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.See(t.Context(), queue.Message{Body: body, Receives: 11}, 0); err == nil {
			t.Error("it was let go of though it could not be kept")
		}
	})
}
