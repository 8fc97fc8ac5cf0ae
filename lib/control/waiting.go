package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Waiting is a reason why a run, or a step of one, that has not ended does not go on.
type Waiting struct {
	Code  WaitCode
	Text  string    // a sentence for people
	Until time.Time // when it ends by itself at the earliest, or is looked at again; zero where nobody can tell
	Who   string    // who or what can end it, for people; "" for time alone
	Line  *Line     // of WaitGate and WaitBlocked: how it stands in line
	Steps []string  // of WaitSteps of a step: the paths of those that have to end, in the order of the workflow

	Queue string    // of WaitClaimedAhead, WaitQueued and WaitNoWorker: where it waits
	Need  string    // of WaitNoWorker: what no worker offers, as target.Spec.Need names it; "" where none serves the queue
	Ahead int64     // of WaitQueued: about how many others are ready in its priority or a higher one, as far as the server sees
	Since time.Time // of WaitLeaseOver: since when the lease is over
	Ticks time.Time // of WaitTickBehind: up to where the ticks have come
}

// WaitCode names a reason; stable, documented, and the same in the HTTP API.
type WaitCode string

// The codes.
const (
	WaitClockOff     WaitCode = "clock_off"     // the server's clock is too far from the store's: it starts nothing
	WaitJobDeleted   WaitCode = "job_deleted"   // it is cancelled when somebody comes to it
	WaitPaused       WaitCode = "paused"        // its job is
	WaitNotDue       WaitCode = "not_due"       // its time has not come
	WaitNotClaimed   WaitCode = "not_claimed"   // its time has come, and a tick is to claim it
	WaitTickBehind   WaitCode = "tick_behind"   // its time has come, and the ticks have not come to that time
	WaitExpired      WaitCode = "expired"       // it may not start any more, and is skipped when somebody comes to it
	WaitClaimedAhead WaitCode = "claimed_ahead" // it was claimed and sent, and its time has not come
	WaitPaced        WaitCode = "paced"         // it makes up for a missed fire, and its place has not come
	WaitBackingOff   WaitCode = "backing_off"   // between two attempts
	WaitNoWorker     WaitCode = "no_worker"     // nobody serves its queue, or offers what it needs
	WaitQueued       WaitCode = "queued"        // it may start, and a worker is to take it
	WaitCancelling   WaitCode = "cancelling"    // its worker has still to hear of the cancel
	WaitGate         WaitCode = "gate"          // it waits in line until others have ended
	WaitBlocked      WaitCode = "blocked"       // it waits in a line that stands still behind a run which ended badly
	WaitRunning      WaitCode = "running"       // an attempt is under way
	WaitSteps        WaitCode = "steps"         // steps of the workflow have not ended
	WaitNotReleased  WaitCode = "not_released"  // of a step: its rule lets it run, and whoever saw to that is to put it in its queue
	WaitLeaseOver    WaitCode = "lease_over"    // the lease of its attempt is over
	WaitSuspended    WaitCode = "suspended"     // of a step: the time that it waits for has not come
	WaitUnreadable   WaitCode = "unreadable"    // what it goes by is gone or damaged, or this version cannot use it
)

// Pool is what a server sees of a queue and its workers.
type Pool struct {
	Ready   map[queue.Priority]int64 // messages that could start now, about
	Alone   bool                     // no process works on it that the server does not see
	Workers int
	Places  int      // of those workers, 0 where that is not known
	Taken   int      // of the places
	Lacking []string // what runs wait for that no worker offers, as target.Spec.Need names it
}

// Standing is what the reasons for the wait of a run, or of a step, are derived from.
type Standing struct {
	Run     run.Run
	Now     time.Time // by the store's clock
	Skewed  error     // nil, or why this server starts nothing
	Due     time.Time // when it may start; for a retrying run when its next attempt may
	Def     job.Definition
	Paused  bool
	Reason  string    // of the pause
	Deleted bool      // the job
	Unread  error     // why its definition cannot be read here, as dispatch.Unreadable has it; nil where it can
	Expired bool      // the lease of the attempt under way
	Pool    *Pool     // nil where the server sees nothing of it
	Line    *Line     // of a run that waits in line
	Ticks   time.Time // of a due run that a tick starts: up to where every tick has come; zero: not looked at
	Step    *StepStanding
}

// Standing looks up why a run waits. What the server sees of the run's queue is for the caller to add, where Queued tells that it matters.
func (s *Service) Standing(ctx context.Context, r run.Run) (Standing, error) {
	st := Standing{Run: r, Now: s.Now(), Due: r.ID.Time()}
	if r.State.Ended() {
		return st, nil
	}
	now, err := s.Dispatch.Clock()
	if st.Skewed = err; err == nil {
		st.Now = time.UnixMilli(now).UTC()
	}
	if r.State == run.Running && !r.Heads() {
		st.Expired = err == nil && s.Dispatch.LeaseOver(r.Lease, now)
	}
	if r.State == run.Scheduled {
		j, err := s.Dispatch.Book.Job(ctx, r.Tenant, r.ID.Job)
		if dispatch.Unreadable(err) {
			st.Unread = err
			return st, nil
		}
		if err != nil {
			return Standing{}, err
		}
		st.Def, st.Paused, st.Reason, st.Deleted = j.Def, j.Def.Paused && !r.IgnorePause, j.Reason, j.Generation == 0 || j.Gone(r.Generation)
		return s.withTicks(ctx, st)
	}
	if r.Suspended() { // which no definition, pause or delete bears on
		st.Due = time.UnixMilli(r.NextAt).UTC()
		return st, nil
	}
	edition, err := s.Dispatch.Usable(ctx, r)
	switch {
	case errors.Is(err, job.ErrNotFound) && dispatch.Unbound(r):
		st.Deleted = true
		return st, nil
	case dispatch.Unreadable(err):
		st.Unread = err
		return st, nil
	case err != nil:
		return Standing{}, err
	}
	st.Def = edition.Def
	if r.State == run.Running {
		return st, nil
	}
	if !r.ID.OnDemand() && !r.ID.IsStep() {
		st.Due = time.UnixMilli(edition.Due(r.Tenant, r.ID.Job, r.ID.Nominal)).UTC()
	}
	if at := time.UnixMilli(r.NextAt).UTC(); at.After(st.Due) {
		st.Due = at
	}
	if r.ID.IsStep() { // no pause and no delete of the job holds it
		return st, nil
	}
	j, err := s.Dispatch.Book.Known(ctx, r.Tenant, r.ID.Job, s.Now())
	if err != nil {
		return Standing{}, err
	}
	st.Deleted = j.Generation == 0 || j.Gone(r.Generation)
	if r.Waits() {
		st.Paused, st.Reason = j.Def.Paused && !r.IgnorePause, j.Reason // nobody else is let in meanwhile
		line, err := s.lineOf(ctx, r)
		if err != nil {
			return Standing{}, err
		}
		st.Line = &line
	}
	return s.withTicks(ctx, st)
}

// withTicks adds how far the ticks have come, where the run is due and one of them is to start it. Requests of a batch have a timer in common, of
// which their runs do not tell: so it is the shard that is furthest behind.
func (s *Service) withTicks(ctx context.Context, st Standing) (Standing, error) {
	if !st.ticked() {
		return st, nil
	}
	shards, err := s.shards(ctx)
	if err != nil {
		return Standing{}, err
	}
	reached := shards[0].Watermark
	for _, shard := range shards[1:] {
		reached = min(reached, shard.Watermark)
	}
	st.Ticks = time.UnixMilli(reached).UTC()
	return st, nil
}

// ticked tells whether the run is due, and a tick starts it: no message of it waits in a queue. A clock that is off tells nothing of that.
func (s Standing) ticked() bool {
	if s.Skewed != nil || s.Due.After(s.Now) {
		return false
	}
	if r := s.Run; r.State == run.Retrying && len(r.Attempts) > 0 {
		return dispatch.WaitsInStore(r, r.Attempts[len(r.Attempts)-1].Ended)
	}
	return s.Run.State == run.Scheduled
}

// tickBehind tells whether the run is due, and the ticks have not come to its time.
func (s Standing) tickBehind() bool {
	return !s.Ticks.IsZero() && s.Ticks.Before(s.Due) && !s.Due.After(s.Now)
}

// Queued tells whether the run waits for a worker, and nothing else.
func (s Standing) Queued() bool {
	return (s.Run.State == run.Queued && !s.Run.Waits() || s.Run.State == run.Retrying) && !s.Due.After(s.Now) && s.Def.Queue != ""
}

// Why gives the reasons why a run does not go on, those first that have to end first; none for one that has ended.
func (s Standing) Why() []Waiting {
	if s.Run.State.Ended() {
		return nil
	}
	if s.Unread != nil {
		return []Waiting{s.whyUnreadable()}
	}
	if s.Step != nil && s.Run.State != run.Running && s.Step.Of.Run.Cancel {
		text := "Its run is being cancelled: the step starts no more."
		switch of := s.Step.Of.Run; {
		case of.Overdue && strings.HasPrefix(of.Reason, "step "):
			text = "A failure stops its run, and the step starts no more: " + of.Reason
		case of.Overdue:
			text = "The time of its run is over: the step starts no more."
		}
		return []Waiting{{Code: WaitCancelling, Text: text}}
	}
	if s.Step != nil && s.Run.State == 0 {
		return s.whyUnreleased()
	}
	if s.Run.Heads() {
		return s.whyHeading()
	}
	if s.Run.Suspended() {
		return s.whySuspended()
	}
	if s.Run.State == run.Running {
		return s.whyRunning()
	}
	var why []Waiting
	add := func(code WaitCode, until time.Time, who, format string, args ...any) {
		why = append(why, Waiting{Code: code, Text: fmt.Sprintf(format, args...), Until: until, Who: who})
	}
	if s.Deleted {
		add(WaitJobDeleted, time.Time{}, "", "Its job was deleted: it starts no more, and is cancelled when its turn comes.")
		return why
	}
	by := s.startBy()
	if !by.IsZero() && s.Now.After(by) {
		const late = "It had not started by %s, and may not start any more: it is skipped %s."
		switch {
		case s.Run.State == run.Queued:
			add(WaitExpired, time.Time{}, "", late, by.Format(time.RFC3339), "at its next check")
		case s.Paused:
			add(WaitExpired, time.Time{}, "", late, by.Format(time.RFC3339), "when its job is resumed")
		default:
			add(WaitExpired, time.Time{}, "", late, by.Format(time.RFC3339), "when a tick comes to it")
		}
		return why
	}
	if s.Skewed != nil {
		why = append(why, s.whyClockOff())
	}
	if s.Paused {
		reason := ""
		if s.Reason != "" {
			reason = " (" + s.Reason + ")"
		}
		add(WaitPaused, time.Time{}, "belfry job resume "+s.Run.ID.Job, "Its job is paused%s: it is held until the job is resumed.", reason)
	}
	early := s.Due.After(s.Now)
	switch {
	case s.Line != nil:
		why = append(why, s.whyInLine())
	case s.Run.State == run.Scheduled && early:
		add(WaitNotDue, s.Due, "", "Its time has not come.")
	case s.tickBehind() && !(s.Paused && s.Run.State == run.Scheduled):
		why = append(why, Waiting{Code: WaitTickBehind, Ticks: s.Ticks, Who: "whoever runs the server; belfry doctor says whether it ticks",
			Text: fmt.Sprintf("Its time has come. The ticks start it, and have only come to %s, which is %s ago.", s.Ticks.Format(time.RFC3339), s.Now.Sub(s.Ticks).Round(time.Second))})
	case s.Run.State == run.Scheduled && !s.Paused:
		add(WaitNotClaimed, time.Time{}, "the next tick", "Its time has come, and the next tick claims it.")
	case s.Run.State == run.Queued && early && s.Run.Reason == run.CaughtUp:
		add(WaitPaced, s.Due, "", "It makes up for a missed fire. What is made up for is paced, and it starts at its place.")
	case s.Run.State == run.Queued && early:
		why = append(why, Waiting{Code: WaitClaimedAhead, Until: s.Due, Queue: s.Def.Queue,
			Text: fmt.Sprintf("It was claimed ahead and waits in the queue %s for its time%s.", s.Def.Queue, s.spread())})
	case s.Run.State == run.Retrying && early:
		add(WaitBackingOff, s.Due, "", "Attempt %d failed. Try %d of %d begins when its back-off is over.", s.Run.Attempt, s.Run.Failures+1, s.Def.Retry.MaxAttempts)
	case s.Queued():
		why = append(why, s.whyQueued())
	}
	if last := len(why) - 1; last >= 0 && !by.IsZero() {
		why[last].Text += fmt.Sprintf(" It is skipped where it has not started by %s.", by.Format(time.RFC3339))
	}
	if last := len(why) - 1; last >= 0 && s.Run.EndBy != 0 && s.Run.State != run.Scheduled {
		why[last].Text += fmt.Sprintf(" It is stopped where it has not ended by %s.", time.UnixMilli(s.Run.EndBy).UTC().Format(time.RFC3339))
	}
	return why
}

// startBy is until when a run may start that has not, zero where it may however late. One that no claim has bound yet has its time from the job as it stands.
func (s Standing) startBy() time.Time {
	by := int64(0)
	switch s.Run.State {
	case run.Queued:
		by = s.Run.StartBy
	case run.Scheduled:
		by = s.Run.Timed(s.Def.Times()).StartBy
	}
	if by == 0 {
		return time.Time{}
	}
	return time.UnixMilli(by).UTC()
}

// whyUnreadable tells of a run that stands still since nobody here knows what it goes by.
func (s Standing) whyUnreadable() Waiting {
	id := s.Run.ID.Whole()
	of := "The definition that it goes by, that of its job,"
	if s.Run.Generation != 0 {
		of = fmt.Sprintf("The definition that it goes by, generation %d of its job,", s.Run.Generation)
	}
	newer := "whoever runs the version that wrote it"
	lost := "whoever has a backup; belfry run cancel " + id.String() + " ends it"
	w := Waiting{Code: WaitUnreadable}
	switch {
	case errors.Is(s.Unread, job.ErrNotFound):
		w.Text, w.Who = of+" is gone. Nothing of it goes on.", lost
	case errors.Is(s.Unread, record.ErrBroken):
		w.Text, w.Who = of+" is damaged. Nothing of it goes on.", lost
	case errors.Is(s.Unread, record.ErrNewer):
		w.Text, w.Who = of+" is of a newer version of Belfry. Nothing of it goes on here.", newer
	default:
		const most = 400 // bytes: all that is unknown of a large workflow would be many times that
		said := strings.ReplaceAll(s.Unread.Error(), "\n", "; ")
		if len(said) > most {
			said = strings.ToValidUTF8(said[:most], "") + "…"
		}
		w.Text, w.Who = fmt.Sprintf("%s cannot be used by this version of Belfry: %s. Nothing of it goes on here.", of, said), newer
	}
	return w
}

func (s Standing) whyClockOff() Waiting {
	return Waiting{Code: WaitClockOff, Who: "whoever sets the clock of the server", Text: fmt.Sprintf("The server starts nothing: %s.", s.Skewed)}
}

// spread tells of a jitter that starts the run later than it was asked for.
func (s Standing) spread() string {
	if late := s.Due.Sub(s.Run.ID.Time()); late > 0 && s.Run.NextAt == 0 {
		return fmt.Sprintf(", which the jitter of its job puts %s later", late)
	}
	return ""
}

// whyInLine tells what a run waits for that no worker may take before others have ended.
func (s Standing) whyInLine() Waiting {
	l := s.Line
	name := l.Gate
	if l.Key != "" {
		name += " for the key " + l.Key
	}
	text := "It is the next in line at the gate " + name
	switch {
	case l.Behind >= MaxBehind:
		text = fmt.Sprintf("At least %d runs are before it in line at the gate %s", MaxBehind, name)
	case l.Behind == 1:
		text = "One run is before it in line at the gate " + name
	case l.Behind > 1:
		text = fmt.Sprintf("%d runs are before it in line at the gate %s", l.Behind, name)
	}
	code, who := WaitGate, "the runs in its way"
	switch n := len(l.InTheWay); {
	case len(l.Blocked) > 0:
		code = WaitBlocked
		b := l.Blocked[0]
		var how string
		how, who = b.toGoOn(l.Gate)
		text += fmt.Sprintf(". The line stands still since %s, when %s ended as %s: %s", time.UnixMilli(b.Since).UTC().Format(time.RFC3339), b.Run, b.State, how)
	case n == 0:
		if who = ""; !s.Paused && l.Closed == nil && !s.Run.TooLate(s.Now.UnixMilli()) {
			text += ". Nobody is in progress there: the next check lets it in as far as there is room, or the next run that joins"
		}
	case n == 1:
		text += ", and " + l.InTheWay[0] + " is in progress"
	case n > 1:
		text += fmt.Sprintf(", and %s and others are in progress", l.InTheWay[0])
	}
	switch {
	case s.Run.Wait.Asks == "":
	case l.Stopping == 1:
		text += ". One of those in progress was asked to stop"
	case l.Stopping > 1:
		text += fmt.Sprintf(". %d of those in progress were asked to stop", l.Stopping)
	}
	if l.Closed != nil {
		who = "belfry gate open " + l.Gate
		if text += ". The gate is closed"; l.Closed.By != "" {
			text += " by " + l.Closed.By
		}
		if l.Closed.Reason != "" {
			text += " (" + l.Closed.Reason + ")"
		}
		text += ": nobody is let in until it is opened"
	}
	if s.Run.Released != 0 {
		text += ". Somebody released it to the front"
		if by := s.Run.Releasing.By; by != "" {
			text += ": " + by
		}
		if reason := s.Run.Releasing.Reason; reason != "" {
			text += " (" + reason + ")"
		}
	}
	switch {
	case l.Until == 0:
	case s.Run.Outwaited(s.Now.UnixMilli()):
		text += fmt.Sprintf(". It may wait no longer than %s, and is skipped at its next check", time.UnixMilli(l.Until).UTC().Format(time.RFC3339))
	default:
		text += fmt.Sprintf(". It is skipped where it still waits there at %s", time.UnixMilli(l.Until).UTC().Format(time.RFC3339))
	}
	return Waiting{Code: code, Text: text + ".", Who: who, Line: l}
}

// whyHeading tells what the run of a workflow waits for.
func (s Standing) whyHeading() []Waiting {
	if s.Run.Cancel {
		return []Waiting{{Code: WaitCancelling, Who: "the workers of its steps", Text: "It is being cancelled: nothing of it starts any more, and workers hear of it when they next renew their leases."}}
	}
	return []Waiting{{Code: WaitSteps, Who: "belfry run steps " + s.Run.ID.String() + " shows them", Text: "Steps of its workflow have not ended."}}
}

// whySuspended tells until when a step waits.
func (s Standing) whySuspended() []Waiting {
	var why []Waiting
	if s.Skewed != nil {
		why = append(why, s.whyClockOff())
	}
	text := "It waits until " + s.Due.Format(time.RFC3339) + ", and then ends."
	if !s.Due.After(s.Now) {
		text = "It has waited until " + s.Due.Format(time.RFC3339) + ", and ends when a tick comes to its run."
	}
	return append(why, Waiting{Code: WaitSuspended, Until: s.Due, Text: text})
}

func (s Standing) whyRunning() []Waiting {
	r := s.Run
	worker := r.HeldBy()
	var why []Waiting
	if r.Cancel {
		why = append(why, Waiting{Code: WaitCancelling, Who: "worker " + worker, Text: "A cancel was asked for, and its worker hears of it when it next renews its lease."})
	}
	lease := Waiting{Code: WaitRunning, Until: time.UnixMilli(r.Lease).UTC(), Who: "worker " + worker,
		Text: fmt.Sprintf("Attempt %d is under way. Its worker renews the lease as long as it works.", r.Attempt)}
	if s.Expired {
		what := "run"
		if s.Step != nil {
			what = "step"
		}
		lease = Waiting{Code: WaitLeaseOver, Since: time.UnixMilli(r.Lease).UTC(), Text: fmt.Sprintf("The worker of attempt %d has let its lease run out: the %s is tried again soon.", r.Attempt, what)}
		if s.Def.Guarantee == job.AtMostOnce {
			lease.Text = fmt.Sprintf("The worker of attempt %d has let its lease run out: the %s ends soon as unknown, since it may start at most once.", r.Attempt, what)
		}
	}
	return append(why, lease)
}

// whyQueued tells what a run waits for that a worker may take.
func (s Standing) whyQueued() Waiting {
	name, need := s.Def.Queue, s.Def.Target.Need()
	workers := "the workers of the queue " + name
	starter := "whoever starts workers of the queue " + name
	switch p := s.Pool; {
	case p == nil:
		return Waiting{Code: WaitQueued, Queue: name, Who: workers, Text: fmt.Sprintf("It waits in the queue %s for a worker.", name)}
	case slices.Contains(p.Lacking, need):
		return Waiting{Code: WaitNoWorker, Queue: name, Need: need, Who: starter, Text: fmt.Sprintf("No worker of the queue %s offers what it needs: %s.", name, need)}
	case p.Alone && p.Workers == 0:
		return Waiting{Code: WaitNoWorker, Queue: name, Who: starter, Text: fmt.Sprintf("No worker serves the queue %s.", name)}
	default:
		text := fmt.Sprintf("It waits in the queue %s for a worker.", name)
		n := p.before(s.Run.Priority)
		if n > 1 {
			text = fmt.Sprintf("It waits in the queue %s for a worker. About %d are ready there in its priority, %s, or a higher one.", name, n, s.Run.Priority)
		}
		if p.Alone && p.Places > 0 && p.Taken >= p.Places {
			text += fmt.Sprintf(" All %d places of its workers are taken.", p.Places)
		}
		return Waiting{Code: WaitQueued, Queue: name, Who: workers, Text: text, Ahead: max(0, n-1)} // its own message is among them
	}
}

// before counts what is ready in a priority and in higher ones: workers take those first.
func (p *Pool) before(own queue.Priority) int64 {
	var n int64
	for _, priority := range queue.Priorities {
		n += p.Ready[priority]
		if priority == own {
			break
		}
	}
	return n
}
