package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// RemoteConfig is what a Remote stands on. Fields without a default are required.
type RemoteConfig struct {
	Dispatch *dispatch.Dispatcher
	Blobs    *blob.Bucket
	Metrics  *metrics.Registry
	Pools    map[string]string // by name, the tenant whose runs a pool has; none is right too
	Secrets  target.Secrets    // what targets name, resolved for workers that cannot. Default target.NoSecrets
	Key      []byte            // of TicketKey: 32 bytes
	Epoch    uint64            // random, of this process: reservations end with it

	MaxReceives int // as Config's

	Shared bool // other servers are on the store, which may be asked for a log of a worker that calls this one

	Log *slog.Logger // default: discards
}

// Remote serves workers in other processes. It keeps nothing of their attempts but who reads their logs: a reservation or an attempt is named by its run,
// its holder and a ticket, which is sealed and travels with the worker. Any process on the store can tell whether a ticket is right. A restart
// voids reservations, and no attempt.
type Remote struct {
	RemoteConfig
	desks   map[string]*Desk // by pool
	base    *Desk            // of no pool, for attempts whose pool is gone
	roster  roster
	readers readers
	afar    afar

	closing sync.Once
	closed  chan struct{}
}

// What a caller of Remote decides on, beside the errors of package worker.
var (
	// ErrNoPool says that there is no such pool for workers of this tenant.
	ErrNoPool = errors.New("no such pool for workers elsewhere")
	// ErrClosing says that this process hands out nothing more; the next one will.
	ErrClosing = errors.New("the server is being stopped")
)

// NewRemote checks the configuration.
func NewRemote(cfg RemoteConfig) (*Remote, error) {
	if cfg.Dispatch == nil || cfg.Blobs == nil || cfg.Metrics == nil {
		return nil, errors.New("lease: Dispatch, Blobs and Metrics are required")
	}
	if len(cfg.Key) != sealKeyBytes {
		return nil, fmt.Errorf("lease: a key of %d bytes, want %d", len(cfg.Key), sealKeyBytes)
	}
	if cfg.Secrets == nil {
		cfg.Secrets = target.NoSecrets
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Remote{RemoteConfig: cfg, desks: map[string]*Desk{}, closed: make(chan struct{})}
	desk := Config{Dispatch: cfg.Dispatch, Blobs: cfg.Blobs, Metrics: cfg.Metrics, Name: "elsewhere", Log: cfg.Log, MaxReceives: cfg.MaxReceives}
	r.base = &Desk{Config: desk}
	for name, tenant := range cfg.Pools {
		if tenant == "" {
			return nil, fmt.Errorf("lease: the pool %s belongs to no tenant", name)
		}
		desk.Queue = name
		var err error
		if r.desks[name], err = New(desk); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Close ends every waiting Take, and refuses new ones. Attempts may still be started, renewed and finished.
func (r *Remote) Close() { r.closing.Do(func() { close(r.closed) }) }

// remoteMark stands between the name of a worker elsewhere and its own number of a start.
const remoteMark = "/"

// IsRemote tells whether a lease is held by a worker in another process, which outlives the end of this one.
func IsRemote(holder string) bool { return strings.Contains(holder, remoteMark) }

// Holder is who holds an attempt: a worker elsewhere, and its own name for one start. A repeated start is known by it.
type Holder struct {
	Worker string
	Start  string
}

func (h Holder) String() string { return h.Worker + remoteMark + h.Start }

// Offered is an offer to a worker elsewhere.
type Offered struct {
	worker.About
	Ticket string
	Lease  time.Duration
}

// reservedFor is how long an offer waits for its start: as short as a slow network allows, since whatever becomes of the worker
// nobody else gets the run meanwhile.
const reservedFor = 10 * time.Second

// Take waits for runs of the worker's pool that it can run, as Desk.Take does.
func (r *Remote) Take(ctx context.Context, tenant string, w Announced, most int, wait time.Duration) ([]Offered, error) {
	desk := r.desks[w.Queue]
	if desk == nil || r.Pools[w.Queue] != tenant {
		return nil, ErrNoPool
	}
	select {
	case <-r.closed: // before anything is taken off the queue, which would come back only after a while
		return nil, ErrClosing
	default:
	}
	r.roster.saw(tenant, w, desk.Dispatch.Now(), desk.Dispatch.Lease)
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer cancel()
		watch.Go(func() {
			select {
			case <-r.closed:
				cancel()
			case <-ctx.Done():
			}
		})
	}
	began := desk.Dispatch.Elapsed()
	for {
		left := wait - (desk.Dispatch.Elapsed() - began)
		offers, err := desk.take(ctx, most, max(0, left), min(reservedFor, desk.Dispatch.Lease))
		select {
		case <-r.closed:
			for _, o := range offers {
				o.Leave(ctx, worker.Stopping)
			}
			return nil, ErrClosing
		default:
		}
		if err != nil {
			return nil, err
		}
		var fit []Offered
		for _, o := range offers {
			if r.fits(ctx, tenant, w, o) {
				fit = append(fit, Offered{About: o.About(), Lease: desk.Dispatch.Lease, Ticket: r.seal(ticket{
					Queue: w.Queue, Tenant: tenant, Run: o.name, Epoch: r.Epoch, Receipt: o.delivery.message.Receipt, Receives: o.delivery.message.Receives, Body: o.delivery.message.Body, Priority: o.delivery.message.Priority})})
			}
		}
		if len(fit) > 0 || left <= 0 {
			return fit, nil
		}
		if len(offers) > 0 {
			pause(ctx, between)
		}
	}
}

// between keeps a worker that can run nothing of a long queue from going through it again and again.
const between = 100 * time.Millisecond

// soon is when a run is offered again that another worker of the pool can run.
const soon = 500 * time.Millisecond

// fits tells whether an offer is for this worker. What is not is left to others.
func (r *Remote) fits(ctx context.Context, tenant string, w Announced, o *Offer) bool {
	if o.run.Tenant != tenant {
		// The pool has changed hands since the run was sent. It belongs to nobody here.
		r.Log.ErrorContext(ctx, "a run of another tenant waits in a pool", "queue", w.Queue, "tenant", o.run.Tenant, "run", o.run.ID.String())
		o.Leave(ctx, worker.Incapable)
		return false
	}
	def := o.edition.Def.Target
	if w.can(def) {
		return true
	}
	if r.roster.lacks(tenant, w.Queue, def, o.desk.Dispatch.Now()) {
		o.Leave(ctx, worker.Incapable)
	} else {
		o.delivery.settle(ctx, verdict{again: soon})
	}
	return false
}

// Start begins an attempt of what was offered. The same start again gives the same attempt, also to a process that was started
// since; what was offered by an earlier process and not started is gone.
func (r *Remote) Start(ctx context.Context, tenant string, id run.ID, sealed string, h Holder) (worker.Task, string, error) {
	held, t, err := r.start(ctx, tenant, id, sealed, h)
	if err != nil {
		return worker.Task{}, "", err
	}
	defer held.room.Give() // what is handed on is no more than maxAfar
	r.heard(held, h, 1)
	if r.Shared {
		r.afar.holds(reading{tenant, held.name}, held)
	}
	if held.delivery != nil { // it was reserved for a moment
		errs, err := held.desk.From.Extend(ctx, held.desk.Dispatch.Lease, held.delivery.message)
		if err = errors.Join(append(errs, err)...); err != nil {
			r.Log.DebugContext(ctx, "a message was not kept back", "run", id.String(), "error", err)
		}
	}
	task := held.Task()
	if task.Failure == nil {
		task.Secrets, task.Withheld = r.secrets(ctx, task)
	}
	t.Body, t.Fence = nil, task.Fence
	return task, r.seal(t), nil
}

func (r *Remote) start(ctx context.Context, tenant string, id run.ID, sealed string, h Holder) (*Held, ticket, error) {
	t, known, err := r.open(sealed, tenant, id, 0)
	if err != nil {
		return nil, t, err
	}
	desk := r.desks[t.Queue]
	standing := run.Run{ID: id, Tenant: tenant}
	if known {
		message, err := run.DecodeMessage(t.Body)
		if err != nil {
			return nil, t, worker.ErrGone
		}
		standing = message.Run
	}
	if !known || t.Receives > 1 {
		read, err := r.read(ctx, standing)
		if err != nil {
			return nil, t, err
		}
		standing = read
	}
	if standing.Holds(standing.Fence) && standing.Worker == h.String() {
		held, err := r.resume(ctx, standing, standing.Fence, t, known)
		if err != nil {
			return nil, t, err
		}
		// Whoever wrote the start may have died before its look at the job.
		look := &Offer{run: standing}
		if held.desk.look(ctx, tenant, look); look.gone || look.blind != nil {
			held.callOff(ctx, look.blind)
			return nil, t, worker.ErrGone
		}
		brings, err := r.brings(ctx, standing)
		if err != nil {
			return nil, t, err
		}
		held.room = r.Dispatch.InputRoom(tenant)
		held.payload, err = held.desk.payload(ctx, standing, brings, held.edition, held.room, true)
		var lost *target.Failure
		if errors.As(err, &lost) {
			held.lost, err = lost, nil
		}
		if err != nil {
			held.room.Give()
		}
		return held, t, err
	}
	if !known {
		return nil, t, worker.ErrGone // the process that offered it is gone, and whoever came after it offers it anew
	}
	m := desk.delivery(t.message())
	o, v := desk.decide(ctx, standing, m)
	if o == nil {
		m.settle(ctx, v)
		return nil, t, worker.ErrGone
	}
	held, err := o.start(ctx, ctx, h.String())
	return held, t, err
}

func (r *Remote) read(ctx context.Context, one run.Run) (run.Run, error) {
	standing, err := r.Dispatch.ReadRuns(ctx, []run.Run{one})
	if err != nil {
		return run.Run{}, err
	}
	return standing[0], nil
}

// secrets looks up what a target names, since a worker elsewhere may have no other source, and tells why of what there is none.
func (r *Remote) secrets(ctx context.Context, t worker.Task) (found, withheld map[string]string) {
	found, withheld = map[string]string{}, map[string]string{}
	for _, name := range t.Target.SecretNames() {
		text, err := r.Secrets(ctx, t.Tenant, name)
		if err != nil {
			withheld[name] = err.Error()
			continue
		}
		found[name] = text
	}
	return found, withheld
}

// Leave gives back what was offered. A start of it whose answer never came is undone: its worker says that it called nothing.
func (r *Remote) Leave(ctx context.Context, tenant string, id run.ID, sealed string, h Holder, why worker.Leaving) error {
	t, known, err := r.open(sealed, tenant, id, 0)
	if err != nil {
		return err
	}
	desk := r.desks[t.Queue]
	if h.Start != "" {
		standing, err := r.read(ctx, run.Run{ID: id, Tenant: tenant})
		if err != nil {
			return err
		}
		if standing.Holds(standing.Fence) && standing.Worker == h.String() {
			held, err := r.resume(ctx, standing, standing.Fence, t, known)
			if err == nil {
				_, err = held.finish(ctx, worker.End{Outcome: run.OutcomeHandedBack})
			}
			return err
		}
	}
	if !known {
		return nil // it comes again by itself
	}
	(&Offer{desk: desk, delivery: desk.delivery(t.message())}).Leave(ctx, why)
	return nil
}

// Claim names an attempt of a worker elsewhere.
type Claim struct {
	Run    run.ID
	Fence  uint64
	Holder Holder
	Ticket string // of the start
}

// Renew keeps an attempt's lease, as worker.Attempt's does.
func (r *Remote) Renew(ctx context.Context, tenant string, c Claim) (worker.Renewed, error) {
	held, err := r.claimed(ctx, tenant, c)
	if err != nil {
		return worker.Renewed{}, err
	}
	r.heard(held, c.Holder, 0)
	which := reading{tenant, held.name}
	renewed, err := held.Renew(ctx)
	if r.Shared && err == nil {
		r.afar.holds(which, held)
	}
	renewed.Read = renewed.Read || r.readers.reads(which, r.Dispatch.Elapsed())
	return renewed, err
}

// Show takes what an attempt has written so far, for those who read it here or at another server on the store, and tells whether anybody does. It asks
// no store: the ticket says whose log it is.
func (r *Remote) Show(ctx context.Context, tenant string, c Claim, so runlog.Log) (read bool, err error) {
	if c.Fence == 0 {
		return false, ErrTicket // that of an offer
	}
	if _, _, err := r.open(c.Ticket, tenant, c.Run, c.Fence); err != nil {
		return false, err
	}
	which := reading{tenant, c.Run.String()}
	read = r.readers.show(which, r.Dispatch.Elapsed(), c.Fence, so)
	if far := r.afar.of(which, c.Fence, r.Dispatch.Elapsed(), 2*r.Dispatch.Lease); far != nil {
		elsewhere, err := far.show(ctx, so)
		return read || elsewhere, err
	}
	return read, nil
}

// Hears tells whether the attempt that holds a run renews its lease here, so that LiveLog hears of it. A worker that has gone over to another server is
// known by the renewal that did not come: it leaves out one at the most.
func (r *Remote) Hears(of run.Run) bool {
	return r.afar.of(reading{of.Tenant, of.ID.String()}, of.Fence, r.Dispatch.Elapsed(), r.Dispatch.Lease*2/3) != nil
}

// LiveLog is what the attempt of a run under way elsewhere has written so far; false where it is not known. It has the attempt's worker asked for it
// with its next renewal, so that it is known to those who ask again.
func (r *Remote) LiveLog(tenant string, id run.ID) (runlog.Log, bool) {
	return r.readers.ask(reading{tenant, id.String()}, r.Dispatch.Elapsed())
}

func (r *Remote) heard(of *Held, h Holder, more int) {
	r.roster.touch(of.started.Tenant, of.edition.Def.Queue, h.Worker, r.Dispatch.Now(), more)
}

// Finish writes the end of an attempt, as worker.Attempt's does.
func (r *Remote) Finish(ctx context.Context, tenant string, c Claim, e worker.End) (run.State, error) {
	held, err := r.claimed(ctx, tenant, c)
	if err != nil {
		return 0, err
	}
	state, err := held.finish(ctx, e)
	if err == nil {
		r.afar.ended(reading{tenant, held.name})
		r.heard(held, c.Holder, -1)
	}
	return state, err
}

// claimed finds an attempt by its fence. Only its holder may speak for it.
func (r *Remote) claimed(ctx context.Context, tenant string, c Claim) (*Held, error) {
	if c.Fence == 0 {
		return nil, ErrTicket // that of an offer
	}
	t, known, err := r.open(c.Ticket, tenant, c.Run, c.Fence)
	if err != nil {
		return nil, err
	}
	standing, err := r.read(ctx, run.Run{ID: c.Run, Tenant: tenant})
	if err != nil {
		return nil, err
	}
	if standing.Version == 0 || standing.Fence != c.Fence || standing.Holds(c.Fence) && standing.Worker != c.Holder.String() {
		return nil, worker.ErrFenced
	}
	held, err := r.resume(ctx, standing, c.Fence, t, known)
	if err == nil {
		r.afar.join(reading{tenant, held.name}, held)
	}
	return held, err
}

// resume makes an attempt of a run as it stands, with the message that it was started by, where that is still known.
func (r *Remote) resume(ctx context.Context, standing run.Run, fence uint64, t ticket, known bool) (*Held, error) {
	edition, err := r.Dispatch.EditionOf(ctx, standing)
	if err != nil {
		return nil, fmt.Errorf("the definition of run %s: %w", standing.ID, err)
	}
	started := standing
	started.Fence = fence
	h := &Held{desk: r.base, name: standing.ID.String(), started: &started, held: standing, edition: edition, resumed: true, showing: r.base.showing(started)}
	if known {
		h.desk = r.desks[t.Queue]
		m := h.desk.delivery(t.message())
		h.delivery = &m
	}
	return h, nil
}

func (t ticket) message() queue.Message {
	return queue.Message{Receipt: t.Receipt, Receives: t.Receives, Body: t.Body, Priority: t.Priority}
}
