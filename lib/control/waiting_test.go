package control_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func TestWhyARunDoesNotGoOn(t *testing.T) {
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	past, later := now.Add(-time.Minute), now.Add(time.Hour)
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "resize"}}, Queue: "gpu", Retry: job.Retry{MaxAttempts: 5}, Guarantee: job.AtLeastOnce}
	once := def
	once.Guarantee = job.AtMostOnce
	id := func(nominal time.Time) run.ID { return run.RequestID("a", nominal.UnixMilli(), 1) }
	scheduled := func(nominal time.Time) run.Run { return run.Run{ID: id(nominal), State: run.Scheduled} }
	queued := run.Run{ID: id(past), State: run.Queued, Priority: queue.Normal}
	running := run.Run{ID: id(past), State: run.Running, Attempt: 2, Worker: "vm-1/x7", Lease: later.UnixMilli()}
	cancelling := running
	cancelling.Cancel = true
	retrying := run.Run{ID: id(past), State: run.Retrying, Attempt: 3, Failures: 2, NextAt: later.UnixMilli()}
	inStore := retrying
	inStore.NextAt, inStore.Attempts = past.UnixMilli(), []run.Attempt{{Number: 3, Ended: past.Add(-16 * time.Minute).UnixMilli()}}
	tooLate := queued
	tooLate.StartBy = past.UnixMilli()
	inTime, openedAgain, paced := queued, scheduled(past), run.Run{ID: run.FireID("a", past.UnixMilli()), State: run.Queued, Reason: run.CaughtUp}
	inTime.StartBy, openedAgain.StartBy, paced.StartBy = later.UnixMilli(), later.UnixMilli(), later.UnixMilli()
	outwaited := queued.JoinNamed("stripe", "", past.UnixMilli(), 0, 1, false, past.UnixMilli()-1).WaitingUntil(past.UnixMilli())
	asks := queued
	asks.Wait.Asks = string(job.OverlapCancel)
	openedAgain.Reason = "retried on request"
	brief := def
	brief.ExpiresAfter = schedule.Duration(30 * time.Second)
	gone := run.Run{ID: id(past), State: run.Running, Generation: 7, Started: past.UnixMilli()}
	unusable := fmt.Errorf("%w: %w", flow.ErrDefinition, errors.Join(errors.New("steps.a: no"), errors.New("steps.b: no")))
	long := fmt.Errorf("%w: %s", flow.ErrDefinition, strings.Repeat("é", 5000))
	depth := map[queue.Priority]int64{queue.High: 2, queue.Normal: 10, queue.Low: 100}

	for name, c := range map[string]struct {
		s     control.Standing
		codes string
		says  string // in the text of the first, or who
		until time.Time
	}{
		"Ended":              {control.Standing{Run: run.Run{State: run.Dead}}, "", "", time.Time{}},
		"NotDue":             {control.Standing{Run: scheduled(later), Due: later}, "not_due", "time has not come", later},
		"Due":                {control.Standing{Run: scheduled(past), Due: past}, "not_claimed", "next tick", time.Time{}},
		"DueNow":             {control.Standing{Run: scheduled(now), Due: now}, "not_claimed", "", time.Time{}},
		"TickBehind":         {control.Standing{Run: scheduled(past), Due: past, Ticks: past.Add(-4 * time.Minute)}, "tick_behind", "come to 2026-11-25T08:55:00Z, which is 5m0s ago. whoever runs the server", time.Time{}},
		"TickJustBehind":     {control.Standing{Run: scheduled(past), Due: past, Ticks: past.Add(-time.Millisecond)}, "tick_behind", "", time.Time{}},
		"TickHasCome":        {control.Standing{Run: scheduled(past), Due: past, Ticks: past}, "not_claimed", "", time.Time{}},
		"TickBehindPaused":   {control.Standing{Run: scheduled(past), Due: past, Ticks: past.Add(-time.Hour), Paused: true}, "paused", "", time.Time{}},
		"TickBehindARetry":   {control.Standing{Run: inStore, Due: past, Ticks: past.Add(-time.Hour)}, "tick_behind", "", time.Time{}},
		"Expired":            {control.Standing{Run: tooLate, Due: past, Paused: true, Pool: &control.Pool{Alone: true}}, "expired", "by 2026-11-25T08:59:00Z", time.Time{}},
		"ExpiredInAPause":    {control.Standing{Run: scheduled(past), Due: past, Paused: true, Def: brief}, "expired", "by 2026-11-25T08:59:30Z, and may not start any more: it is skipped when its job is resumed.", time.Time{}},
		"ExpiredUnclaimed":   {control.Standing{Run: scheduled(past), Due: past, Def: brief}, "expired", "it is skipped when a tick comes to it.", time.Time{}},
		"OpenedAgainInPause": {control.Standing{Run: openedAgain, Due: past, Paused: true, Def: brief}, "paused", "It is skipped where it has not started by 2026-11-25T10:00:00Z.", time.Time{}},
		"PausedInTime":       {control.Standing{Run: scheduled(now), Due: now, Paused: true, Def: brief}, "paused", "It is skipped where it has not started by 2026-11-25T09:00:30Z.", time.Time{}},
		"QueuedInTime":       {control.Standing{Run: inTime, Due: past}, "queued", "for a worker. It is skipped where it has not started by 2026-11-25T10:00:00Z.", time.Time{}},
		"NoWorkerInTime":     {control.Standing{Run: inTime, Due: past, Pool: &control.Pool{Alone: true}}, "no_worker", "by 2026-11-25T10:00:00Z.", time.Time{}},
		"PacedInTime":        {control.Standing{Run: paced, Due: later}, "paced", "by 2026-11-25T10:00:00Z.", later},
		"InLineInTime": {control.Standing{Run: inTime, Due: past, Line: &control.Line{Gate: "job:a", Behind: 2, InTheWay: []string{"a~1"}}}, "gate",
			"a~1 is in progress. It is skipped where it has not started by 2026-11-25T10:00:00Z. the runs in its way", time.Time{}},
		"InLineForOneThatStops": {control.Standing{Run: asks, Due: past, Line: &control.Line{Gate: "job:a", InTheWay: []string{"a~1"}, Stopping: 1}}, "gate",
			"and a~1 is in progress. One of those in progress was asked to stop. the runs in its way", time.Time{}},
		"InLineForOneOpenedByHand": {control.Standing{Run: asks, Due: past, Line: &control.Line{Gate: "job:a", InTheWay: []string{"a~1"}}}, "gate",
			"and a~1 is in progress. the runs in its way", time.Time{}},
		"InLineBesideRoom": {control.Standing{Run: queued, Due: past, Line: &control.Line{Gate: "job:a"}}, "gate", "Nobody is in progress there: the next check lets it in", time.Time{}},
		"InLineWhereClosed": {control.Standing{Run: queued, Due: past, Line: &control.Line{Gate: "stripe", Closed: &gate.Change{Reason: "they are down"}}}, "gate",
			"It is the next in line at the gate stripe. The gate is closed (they are down): nobody is let in until it is opened. belfry gate open stripe", time.Time{}},
		"InLineWhereClosedAndBusy": {control.Standing{Run: queued, Due: past, Line: &control.Line{Gate: "stripe", InTheWay: []string{"a~1"}, Closed: new(gate.Change)}}, "gate",
			"a~1 is in progress. The gate is closed: nobody is let in until it is opened. belfry gate open stripe", time.Time{}},
		"InLineForAWhile": {control.Standing{Run: queued, Due: past, Line: &control.Line{Gate: "stripe", InTheWay: []string{"a~1"}, Until: now.Add(time.Hour).UnixMilli()}}, "gate",
			", and a~1 is in progress. It is skipped where it still waits there at " + now.Add(time.Hour).Format(time.RFC3339) + ".", time.Time{}},
		"InLineForTooLong": {control.Standing{Run: outwaited, Due: past, Line: &control.Line{Gate: "stripe", InTheWay: []string{"a~1"}, Until: outwaited.Wait.Until}}, "gate",
			"It may wait no longer than " + past.Format(time.RFC3339) + ", and is skipped at its next check.", time.Time{}},
		"InLineForTooLongBesideRoom": {control.Standing{Run: outwaited, Due: past, Line: &control.Line{Gate: "stripe", Until: outwaited.Wait.Until}}, "gate",
			"It is the next in line at the gate stripe. It may wait no longer than " + past.Format(time.RFC3339), time.Time{}},
		"InLineInAPause":     {control.Standing{Run: queued, Due: past, Paused: true, Line: &control.Line{Gate: "job:a"}}, "paused gate", "belfry job resume a", time.Time{}},
		"NotYetExpired":      {control.Standing{Run: run.Run{ID: id(past), State: run.Queued, StartBy: now.UnixMilli()}, Due: past}, "queued", "", time.Time{}},
		"Paused":             {control.Standing{Run: scheduled(past), Due: past, Paused: true, Reason: "db move"}, "paused", "(db move)", time.Time{}},
		"PausedAndNotDue":    {control.Standing{Run: scheduled(later), Due: later, Paused: true}, "paused not_due", "belfry job resume a", time.Time{}},
		"Deleted":            {control.Standing{Run: scheduled(later), Due: later, Deleted: true, Paused: true}, "job_deleted", "cancelled", time.Time{}},
		"DeletedInBackOff":   {control.Standing{Run: retrying, Due: later, Deleted: true}, "job_deleted", "", time.Time{}},
		"ClockOff":           {control.Standing{Run: scheduled(past), Due: past, Skewed: dispatch.ErrSkewed}, "clock_off not_claimed", "NTP", time.Time{}},
		"ClockOffInRunning":  {control.Standing{Run: running, Skewed: dispatch.ErrSkewed}, "running", "", later},
		"ClaimedAhead":       {control.Standing{Run: run.Run{ID: id(later), State: run.Queued}, Due: later}, "claimed_ahead", "queue gpu for its time.", later},
		"Paced":              {control.Standing{Run: run.Run{ID: id(past), State: run.Queued, NextAt: later.UnixMilli(), Reason: run.CaughtUp}, Due: later}, "paced", "paced", later},
		"Jitter":             {control.Standing{Run: queued, Due: later}, "claimed_ahead", "1h1m0s later", later},
		"HandedBackInJitter": {control.Standing{Run: run.Run{ID: id(past), State: run.Queued, Attempt: 1}, Due: later}, "claimed_ahead", "", later},
		"BackingOff":         {control.Standing{Run: retrying, Due: later}, "backing_off", "Attempt 3 failed. Try 3 of 5", later},
		"BackOffIsOver":      {control.Standing{Run: retrying, Due: past}, "queued", "queue gpu", time.Time{}},
		"QueuedUnseen":       {control.Standing{Run: queued, Due: past}, "queued", "the workers of the queue gpu", time.Time{}},
		"QueuedBehind":       {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Ready: depth, Alone: true, Workers: 1}}, "queued", "About 12 are ready there in its priority, normal,", time.Time{}},
		"QueuedAlone":        {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Ready: map[queue.Priority]int64{queue.Normal: 1}}}, "queued", "for a worker.", time.Time{}},
		"Busy":               {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Ready: depth, Alone: true, Workers: 1, Places: 4, Taken: 4}}, "queued", "All 4 places", time.Time{}},
		"NobodyServesIt":     {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Ready: depth, Alone: true}}, "no_worker", "No worker serves the queue gpu", time.Time{}},
		"OthersMayServeIt":   {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Ready: depth}}, "queued", "", time.Time{}},
		"NobodyOffersIt":     {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Alone: true, Workers: 3, Lacking: []string{"http", "handler resize"}}}, "no_worker", "offers what it needs: handler resize", time.Time{}},
		"OthersLackOther":    {control.Standing{Run: queued, Due: past, Pool: &control.Pool{Alone: true, Workers: 3, Lacking: []string{"http"}}}, "queued", "", time.Time{}},
		"Running":            {control.Standing{Run: running}, "running", "worker vm-1", later},
		"Cancelling":         {control.Standing{Run: cancelling}, "cancelling running", "worker vm-1", time.Time{}},
		"LeaseOver":          {control.Standing{Run: running, Expired: true}, "lease_over", "tried again", time.Time{}},
		"DefinitionGone": {control.Standing{Run: gone, Unread: job.ErrNotFound}, "unreadable",
			"generation 7 of its job, is gone. Nothing of it goes on. whoever has a backup; belfry run cancel " + gone.ID.String() + " ends it", time.Time{}},
		"DefinitionDamaged":          {control.Standing{Run: gone, Unread: record.ErrBroken}, "unreadable", "is damaged", time.Time{}},
		"DefinitionNewer":            {control.Standing{Run: gone, Unread: record.ErrNewer}, "unreadable", "of a newer version of Belfry. Nothing of it goes on here. whoever runs the version", time.Time{}},
		"DefinitionUnusable":         {control.Standing{Run: gone, Unread: unusable}, "unreadable", "cannot be used by this version of Belfry: the workflow cannot be used: steps.a: no; steps.b: no. Nothing", time.Time{}},
		"JobDamaged":                 {control.Standing{Run: scheduled(past), Unread: record.ErrBroken}, "unreadable", "The definition that it goes by, that of its job, is damaged", time.Time{}},
		"DefinitionUnusableAtLength": {control.Standing{Run: gone, Unread: long}, "unreadable", strings.Repeat("é", 100) + "…. Nothing", time.Time{}},
		"LeaseOverOnce":              {control.Standing{Run: running, Expired: true, Def: once}, "lease_over", "unknown", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.Now = now
			if c.s.Def.Queue == "" {
				c.s.Def = def
			}
			why := c.s.Why()
			var codes []string
			for _, w := range why {
				codes = append(codes, string(w.Code))
				if w.Text == "" || !w.Until.IsZero() && w.Until.Before(now) {
					t.Errorf("%+v, want a text and no time that is over", w)
				}
			}
			if got := strings.Join(codes, " "); got != c.codes {
				t.Fatalf("got %s, want %s", got, c.codes)
			}
			if len(why) > 0 && (!strings.Contains(why[0].Text+" "+why[0].Who, c.says) || !why[0].Until.Equal(c.until)) {
				t.Errorf("got %+v, want it to say %q, until %s", why[0], c.says, c.until)
			}
		})
	}
}
