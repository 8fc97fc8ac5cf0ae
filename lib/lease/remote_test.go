package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

const (
	pool   = "far"
	tenant = "acme"
)

// office is a store with a server of workers elsewhere, which may be started anew.
type office struct {
	*lease.Remote
	t       *testing.T
	store   *memory.Store
	metrics *metrics.Registry
	queue   queue.Queue
	blobs   *blob.Bucket
	d       *dispatch.Dispatcher
	jobs    int64
}

func inOffice(t *testing.T, test func(t *testing.T, o *office)) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{t: t, store: memory.New(memory.Config{}), metrics: metrics.New()}
		o.restart()
		test(t, o)
	})
}

// restart is a new process: its queue is empty, its key another.
func (o *office) restart() {
	o.t.Helper()
	began := time.Now()
	o.queue = queuelocal.New(queuelocal.Config{Now: time.Now})
	o.blobs = blob.New(memblob.OpenBucket(nil))
	var err error
	o.d, err = dispatch.New(dispatch.Config{Blobs: o.blobs, Store: o.store, Book: job.NewBook(o.store, job.Compile), Queues: map[string]queue.Queue{pool: o.queue},
		Owners: map[string]string{pool: tenant}, Layout: timer.Layout{Shards: 1}, Now: time.Now,
		Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Metrics: o.metrics})
	if err != nil {
		o.t.Fatal(err)
	}
	fresh := make([]byte, 32)
	for i := range fresh {
		fresh[i] = byte(rand.Uint32())
	}
	key, err := lease.TicketKey(o.t.Context(), o.store, fresh, rand.Uint64())
	if err != nil {
		o.t.Fatal(err)
	}
	secrets := func(_ context.Context, _, name string) (string, error) {
		if name == "known" {
			return "the secret", nil
		}
		return "", errors.New("there is none of that name")
	}
	if o.Remote, err = lease.NewRemote(lease.RemoteConfig{Dispatch: o.d, Blobs: o.blobs, Metrics: o.metrics,
		Pools: map[string]string{pool: tenant}, Key: key, Epoch: rand.Uint64(), Secrets: secrets}); err != nil {
		o.t.Fatal(err)
	}
}

// queued makes a job and a run of it that is due, and sends it.
func (o *office) queued(of string, change func(*job.Definition)) run.Run {
	o.t.Helper()
	o.jobs++
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}, Queue: pool}.WithDefaults()
	change(&def)
	j := job.Job{Tenant: of, Name: "j" + string(rune('a'+o.jobs)), Generation: o.jobs, Def: def}
	op, err := j.Put(1)
	o.write(op, err)
	r := run.Run{ID: run.RequestID(j.Name, time.Now().UnixMilli(), rand.Uint64()), Tenant: of, State: run.Queued, Trigger: run.ByRequest,
		Priority: queue.Normal, Generation: j.Generation, Created: time.Now().UnixMilli()}
	op, err = r.Item(rand.Uint64())
	r.Version = o.write(op, err)
	o.send(r)
	return r
}

func (o *office) write(op store.Op, err error) uint64 {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
	versions, err := o.store.Write(context.Background(), op)
	if err != nil {
		o.t.Fatal(err)
	}
	return versions[0]
}

func (o *office) send(r run.Run) {
	o.t.Helper()
	if unsent, err := o.d.Send(context.Background(), []dispatch.Outgoing{{Run: r, Queue: pool}}); err != nil || len(unsent) > 0 {
		o.t.Fatalf("%d not sent: %v", len(unsent), err)
	}
}

func (o *office) read(r run.Run) run.Run {
	o.t.Helper()
	items, err := o.store.Get(context.Background(), r.ID.Key(r.Tenant))
	if err != nil {
		o.t.Fatal(err)
	}
	now, _, err := run.FromItem(r.Tenant, r.ID, items[0])
	if err != nil {
		o.t.Fatal(err)
	}
	return now
}

func able(name string, handlers ...string) lease.Announced {
	return lease.Announced{Worker: name, Queue: pool, Handlers: handlers, Concurrency: 1}
}

// take takes one run.
func (o *office) take(w lease.Announced) lease.Offered {
	o.t.Helper()
	offers, err := o.Take(o.t.Context(), tenant, w, 10, 20*time.Second)
	if err != nil || len(offers) != 1 {
		o.t.Fatalf("%d offers, %v; want one", len(offers), err)
	}
	return offers[0]
}

// take1 takes one run of several.
func (o *office) take1(w lease.Announced) lease.Offered {
	o.t.Helper()
	offers, err := o.Take(o.t.Context(), tenant, w, 1, 20*time.Second)
	if err != nil || len(offers) != 1 {
		o.t.Fatalf("%d offers, %v; want one", len(offers), err)
	}
	return offers[0]
}

func anyJob(*job.Definition) {}

func once(d *job.Definition) { d.Guarantee, d.Retry.MaxAttempts = job.AtMostOnce, 1 }

var me = lease.Holder{Worker: "w-1", Start: "1"}

func TestP5_ARepeatedStartIsTheSameAttempt(t *testing.T) {
	for name, between := range map[string]func(*office){"AtTheSameServer": func(*office) {}, "AfterItsRestart": (*office).restart} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				r := o.queued(tenant, once)
				offer := o.take(able("w-1", "f"))
				first, _, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
				if err != nil {
					t.Fatal(err)
				}
				between(o)
				again, ticket, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
				if err != nil || again.Fence != first.Fence || again.Attempt != 1 {
					t.Fatalf("again: %+v, %v; want fence %d", again, err, first.Fence)
				}
				for _, other := range []lease.Holder{{Worker: "w-1", Start: "2"}, {Worker: "w-2", Start: "1"}} {
					if _, _, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, other); !errors.Is(err, worker.ErrGone) {
						t.Errorf("%s: %v, want it gone", other, err)
					}
				}
				claim := lease.Claim{Run: r.ID, Fence: again.Fence, Holder: me, Ticket: ticket}
				for range 2 { // an end whose answer was lost
					if state, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil || state != run.Succeeded {
						t.Errorf("%s, %v", state, err)
					}
				}
				if now := o.read(r); now.State != run.Succeeded || now.Attempt != 1 {
					t.Errorf("%+v", now)
				}
				if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeCrashed}); !errors.Is(err, worker.ErrFenced) {
					t.Errorf("another end after the end: %v, want it fenced", err)
				}
			})
		})
	}
}

// What was offered by a process that is gone and was not started is not started by its ticket: a new message comes for it.
func TestAReservationEndsWithItsServer(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, once)
		offer := o.take(able("w-1", "f"))
		o.restart()
		if _, _, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me); !errors.Is(err, worker.ErrGone) {
			t.Errorf("%v, want it gone", err)
		}
		if now := o.read(r); now.State != run.Queued {
			t.Errorf("it is %s", now.State)
		}
		o.send(r) // as the recovery does
		if offer := o.take(able("w-1", "f")); offer.Run != r.ID.String() {
			t.Errorf("offered %s", offer.Run)
		}
	})
}

func TestAReservationThatIsNotUsedEndsByItself(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, anyJob)
		o.take(able("w-1", "f")) // its answer is lost
		began := time.Now()
		if offer := o.take(able("w-2", "f")); offer.Run != r.ID.String() || time.Since(began) > 11*time.Second || offer.First {
			t.Errorf("offered %+v after %s", offer, time.Since(began))
		}
	})
}

// Nothing is called yet, and its worker says so: at most once goes on.
func TestP5_AStartThatIsGivenUpIsUndone(t *testing.T) {
	for name, between := range map[string]func(*office){"AtTheSameServer": func(*office) {}, "AfterItsRestart": (*office).restart} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				r := o.queued(tenant, once)
				offer := o.take(able("w-1", "f"))
				if _, _, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me); err != nil {
					t.Fatal(err)
				}
				between(o)
				if err := o.Leave(t.Context(), tenant, r.ID, offer.Ticket, me, worker.Stopping); err != nil {
					t.Fatal(err)
				}
				if now := o.read(r); now.State != run.Queued || now.Crashes != 0 {
					t.Errorf("%+v", now)
				}
				if offer := o.take(able("w-2", "f")); offer.Run != r.ID.String() {
					t.Errorf("offered %s", offer.Run)
				}
			})
		})
	}
}

func TestP6_OnlyItsHolderSpeaksForAnAttempt(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, anyJob)
		offer := o.take(able("w-1", "f"))
		task, ticket, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
		if err != nil {
			t.Fatal(err)
		}
		good := lease.Claim{Run: r.ID, Fence: task.Fence, Holder: me, Ticket: ticket}
		for name, change := range map[string]func(*lease.Claim){
			"another worker": func(c *lease.Claim) { c.Holder.Worker = "w-2" },
			"another start":  func(c *lease.Claim) { c.Holder.Start = "2" },
		} {
			claim := good
			change(&claim)
			if _, err := o.Renew(t.Context(), tenant, claim); !errors.Is(err, worker.ErrFenced) {
				t.Errorf("%s renews: %v", name, err)
			}
			if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); !errors.Is(err, worker.ErrFenced) {
				t.Errorf("%s finishes: %v", name, err)
			}
		}
		if now := o.read(r); now.State != run.Running || now.Fence != task.Fence {
			t.Errorf("%+v", now)
		}
		if _, err := o.Renew(t.Context(), tenant, good); err != nil {
			t.Error(err)
		}
	})
}

// A ticket says which run and attempt it is for, and nobody else can have made it: neither the run's ID nor its fence nor the name of its
// holder is a secret.
func TestP6_ATicketIsOfItsRunAndAttempt(t *testing.T) {
	for name, between := range map[string]func(*office){"AtTheSameServer": func(*office) {}, "AfterItsRestart": (*office).restart} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				r, other := o.queued(tenant, once), o.queued(tenant, once)
				offers := map[string]lease.Offered{}
				for len(offers) < 2 {
					offer := o.take1(able("w-1", "f"))
					offers[offer.Run] = offer
				}
				offer := offers[r.ID.String()]
				task, ticket, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
				if err != nil {
					t.Fatal(err)
				}
				theirs := lease.Holder{Worker: "w-2", Start: "1"}
				_, another, err := o.Start(t.Context(), tenant, other.ID, offers[other.ID.String()].Ticket, theirs)
				if err != nil {
					t.Fatal(err)
				}
				between(o)
				good := lease.Claim{Run: r.ID, Fence: task.Fence, Holder: me, Ticket: ticket}
				refuse := func(what, of string, claim lease.Claim) {
					t.Helper()
					_, renews := o.Renew(t.Context(), of, claim)
					_, finishes := o.Finish(t.Context(), of, claim, worker.End{Outcome: run.OutcomeSucceeded})
					_, _, starts := o.Start(t.Context(), of, claim.Run, claim.Ticket, claim.Holder)
					leaves := o.Leave(t.Context(), of, claim.Run, claim.Ticket, claim.Holder, worker.Stopping)
					for word, err := range map[string]error{"renews": renews, "finishes": finishes, "starts": starts, "leaves": leaves} {
						if !errors.Is(err, lease.ErrTicket) {
							t.Errorf("%s %s: %v", what, word, err)
						}
					}
				}
				turned := []byte(ticket)
				turned[len(turned)/2] ^= 1
				for what, text := range map[string]string{"no ticket": "", "a made-up one": strings.Repeat("QUFB", 40), "one of no form": "é\x00",
					"another run's": another, "one that was changed": string(turned), "one cut off": ticket[:len(ticket)-4], "a longer one": ticket + "AAAA",
					"one with a line break": ticket + "\n", "one with a break of CRLF": ticket + "\r\n", "one with a break in it": ticket[:20] + "\n" + ticket[20:], "one behind a break": "\n" + ticket,
					"one with a blank": ticket + " ", "one that is padded": ticket + "="} {
					claim := good
					claim.Ticket = text
					refuse(what, tenant, claim)
				}
				for what, change := range map[string]func(*lease.Claim){
					"for another run":   func(c *lease.Claim) { c.Run, c.Holder = other.ID, theirs },
					"for no run":        func(c *lease.Claim) { c.Run = run.RequestID("none", 1, 1) },
					"for a newer fence": func(c *lease.Claim) { c.Fence++ },
					"for an older one":  func(c *lease.Claim) { c.Fence-- },
				} {
					claim := good
					change(&claim)
					refuse(what, tenant, claim)
				}
				refuse("for another tenant", "rival", good)
				for _, fence := range []uint64{0, task.Fence} { // an offer's is for a start
					claim := good
					claim.Ticket, claim.Fence = offer.Ticket, fence
					_, renews := o.Renew(t.Context(), tenant, claim)
					_, finishes := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded})
					if !errors.Is(renews, lease.ErrTicket) || !errors.Is(finishes, lease.ErrTicket) {
						t.Errorf("by the ticket of an offer, fence %d: %v, %v", fence, renews, finishes)
					}
				}
				if now := o.read(r); now.State != run.Running || now.Fence != task.Fence || now.Version != task.Fence {
					t.Errorf("after all of it: %+v", now)
				}
				if _, err := o.Renew(t.Context(), tenant, good); err != nil {
					t.Errorf("the right one: %v", err)
				}
				if state, err := o.Finish(t.Context(), tenant, good, worker.End{Outcome: run.OutcomeSucceeded}); err != nil || state != run.Succeeded {
					t.Errorf("the right one finishes: %s, %v", state, err)
				}
			})
		})
	}
}

// Servers that start at once agree on the key of their store.
func TestServersOfAStoreShareTheKeyOfTickets(t *testing.T) {
	s := memory.New(memory.Config{})
	keys := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], err = lease.TicketKey(t.Context(), s, []byte(strings.Repeat(string(rune('a'+i)), 32)), uint64(i+1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		if len(key) != 32 || !slices.Equal(key, keys[0]) {
			t.Errorf("keys %q, want one", keys)
		}
	}
}

func TestP12_APoolIsItsTenants(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		if _, err := o.Take(t.Context(), "rival", able("w-1", "f"), 1, time.Second); !errors.Is(err, lease.ErrNoPool) {
			t.Errorf("another tenant takes: %v", err)
		}
		theirs := o.queued("rival", anyJob) // sent before the pool changed hands
		mine := o.queued(tenant, anyJob)
		offer := o.take(able("w-1", "f"))
		if offer.Run != mine.ID.String() {
			t.Fatalf("offered %s", offer.Run)
		}
		for _, of := range []string{"rival", "nobody"} { // a ticket is of no use to others
			if _, _, err := o.Start(t.Context(), of, mine.ID, offer.Ticket, me); !errors.Is(err, lease.ErrTicket) {
				t.Errorf("%s starts: %v", of, err)
			}
			if err := o.Leave(t.Context(), of, mine.ID, offer.Ticket, lease.Holder{Worker: "w"}, worker.Stopping); !errors.Is(err, lease.ErrTicket) {
				t.Errorf("%s leaves: %v", of, err)
			}
		}
		if offers, err := o.Take(t.Context(), tenant, able("w-2", "f"), 10, 0); err != nil || len(offers) != 0 {
			t.Errorf("after what others said of it: %d offers, %v; want it reserved still", len(offers), err)
		}
		if _, _, err := o.Start(t.Context(), tenant, theirs.ID, offer.Ticket, me); !errors.Is(err, lease.ErrTicket) {
			t.Errorf("a run of another tenant starts: %v", err)
		}
		if len(o.Workers("rival")) != 0 || len(o.Workers(tenant)) != 2 {
			t.Errorf("the rival sees %+v, acme %+v", o.Workers("rival"), o.Workers(tenant))
		}
		if now := o.read(theirs); now.State != run.Queued {
			t.Errorf("the rival's run is %s", now.State)
		}
	})
}

func TestARunGoesToAWorkerThatHasItsHandler(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, anyJob)
		offers, err := o.Take(t.Context(), tenant, able("other", "g"), 10, 5*time.Second)
		if err != nil || len(offers) != 0 {
			t.Fatalf("%d offers, %v", len(offers), err)
		}
		if got := o.Lacking(tenant, pool); !slices.Equal(got, []string{"handler f"}) {
			t.Errorf("lacking %v, want handler f", got)
		}
		began := time.Now()
		if offer := o.take(able("right", "f")); offer.Run != r.ID.String() || time.Since(began) > 20*time.Second {
			t.Errorf("offered %s after %s", offer.Run, time.Since(began))
		}
		// With both there, it does not take long whoever is asked first.
		second := o.queued(tenant, anyJob)
		began = time.Now()
		if offers, err := o.Take(t.Context(), tenant, able("other", "g"), 10, 0); err != nil || len(offers) != 0 {
			t.Fatalf("%d offers, %v", len(offers), err)
		}
		if offer := o.take(able("right", "f")); offer.Run != second.ID.String() || time.Since(began) > time.Second {
			t.Errorf("offered %s after %s", offer.Run, time.Since(began))
		}
		time.Sleep(3 * time.Minute)
		if got, workers := o.Lacking(tenant, pool), o.Workers(tenant); len(got)+len(workers) != 0 {
			t.Errorf("after minutes: lacking %v, workers %+v; want them forgotten", got, workers)
		}
	})
}

func TestARunOfAWSGoesToAWorkerThatCallsIt(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		queued := o.queued(tenant, func(d *job.Definition) {
			d.Target = target.Spec{AWS: &target.AWS{ARN: "arn:aws:sqs:eu-west-1:123456789012:orders"}}
		})
		if offers, err := o.Take(t.Context(), tenant, lease.Announced{Worker: "w-1", Queue: pool, HTTP: true, Exec: true}, 1, 0); err != nil || len(offers) != 0 {
			t.Fatalf("offered to a worker that does not call AWS: %v, %v", offers, err)
		}
		if got := o.Lacking(tenant, pool); !slices.Equal(got, []string{"aws"}) {
			t.Errorf("lacking %q", got)
		}
		if offer := o.take(lease.Announced{Worker: "w-2", Queue: pool, AWS: true}); offer.Run != queued.ID.String() {
			t.Errorf("offered %s, want %s", offer.Run, queued.ID)
		}
	})
}

func TestARunThatMailsGoesToAWorkerWithAMailServer(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		queued := o.queued(tenant, func(d *job.Definition) {
			d.Target = target.Spec{Email: &target.Email{To: []string{"ops@example.org"}}}
		})
		if offers, err := o.Take(t.Context(), tenant, lease.Announced{Worker: "w-1", Queue: pool, HTTP: true, Exec: true, AWS: true}, 1, 0); err != nil || len(offers) != 0 {
			t.Fatalf("offered to a worker that sends no mail: %v, %v", offers, err)
		}
		if got := o.Lacking(tenant, pool); !slices.Equal(got, []string{"email"}) {
			t.Errorf("lacking %q", got)
		}
		if offer := o.take(lease.Announced{Worker: "w-2", Queue: pool, Email: true}); offer.Run != queued.ID.String() {
			t.Errorf("offered %s, want %s", offer.Run, queued.ID)
		}
	})
}

func TestWorkersAreSeenWithWhatTheyDo(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, anyJob)
		w := able("w-1", "f")
		w.Labels = map[string]string{"zone": "eu"}
		offer := o.take(w)
		task, ticket, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		claim := lease.Claim{Run: r.ID, Fence: task.Fence, Holder: me, Ticket: ticket}
		if _, err := o.Renew(t.Context(), tenant, claim); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a busy worker asks for nothing
		if got := o.Workers(tenant); len(got) != 1 || got[0].Running != 1 || got[0].Labels["zone"] != "eu" || time.Since(got[0].Last) != time.Minute {
			t.Errorf("%+v", got)
		}
		if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
			t.Fatal(err)
		}
		if got := o.Workers(tenant); len(got) != 1 || got[0].Running != 0 {
			t.Errorf("afterwards %+v", got)
		}
	})
}

// A token may be in wrong hands: whatever workers call themselves and say of themselves takes bounded memory.
func TestP11_WhatWorkersSayOfThemselvesIsBounded(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		said := able("", strings.Repeat("h", 1<<20))
		meet := func(workers int) {
			t.Helper()
			for i := range workers {
				said.Worker = fmt.Sprintf("w-%d", i)
				if _, err := o.Take(t.Context(), tenant, said, 1, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		meet(40)
		meet(40) // the same again
		if seen := len(o.Workers(tenant)); seen < 10 || seen > 16 {
			t.Errorf("%d workers that say 1 MB each are remembered, want some of them, in 16 MB", seen)
		}
		time.Sleep(2 * time.Minute)
		said.Handlers = nil
		meet(40)
		if seen := len(o.Workers(tenant)); seen != 40 {
			t.Errorf("%d workers are remembered after the others were forgotten, want 40", seen)
		}
	})
}

func TestSecretsTravelWithTheTask(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, func(d *job.Definition) {
			d.Target = target.Spec{HTTP: &target.HTTP{URL: "https://example.org", Headers: map[string]target.Value{
				"A": {Secret: "known"}, "B": {Secret: "unknown"}}}}
		})
		offer := o.take(lease.Announced{Worker: "w-1", Queue: pool, HTTP: true})
		task, _, err := o.Start(t.Context(), tenant, r.ID, offer.Ticket, me)
		if err != nil || task.Secrets["known"] != "the secret" || task.Withheld["unknown"] != "there is none of that name" {
			t.Errorf("%+v, %v", task, err)
		}
	})
}

func TestP11_ClosingEndsTheWaiting(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		taken := make(chan error, 1)
		go func() {
			_, err := o.Take(t.Context(), tenant, able("w-1", "f"), 1, 20*time.Second)
			taken <- err
		}()
		synctest.Wait()
		began := time.Now()
		o.Close()
		if err := <-taken; !errors.Is(err, lease.ErrClosing) || time.Since(began) != 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		r := o.queued(tenant, anyJob)
		if _, err := o.Take(t.Context(), tenant, able("w-1", "f"), 1, time.Second); !errors.Is(err, lease.ErrClosing) {
			t.Errorf("%v", err)
		}
		messages, err := o.queue.Receive(t.Context(), 1, 0, time.Second)
		if err != nil || len(messages) != 1 || o.read(r).State != run.Queued {
			t.Errorf("what was not handed out: %d messages, %v", len(messages), err)
		}
	})
}
