package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Turn is what a tick has to go by that is called, works and ends, as a function does.
type Turn struct {
	// Until is when it begins nothing further, on the Dispatcher's elapsed clock: what is under way ends some seconds later. Where it
	// has come to by then is written. 0: when nothing is left.
	Until time.Duration

	// Work bounds each pass, as in Config, which is the default: after how much it lets others have the shard, and asks for help.
	Work int

	Help *Help // what it was asked for; nil for a tick by the clock

	// Ask starts further ticks, one for each Help; it may be slow, lose some and start some twice. nil: nobody can be asked.
	Ask func(context.Context, []Help) error
}

// CalledWork is the Work of a tick that is called each minute, as a function is: after it the pass lets others have the shard, and asks for
// help. Some seconds of work, of the minute that there is.
const CalledWork = 5000

// Help is what a tick that has more than it can do asks another for. The two share the shards by lease.
type Help struct {
	At         int64 `json:"at"`         // the clock of the tick that first asked, Unix ms
	Upto       int64 `json:"upto"`       // its horizon, Unix ms: what wakes up to it is to be claimed
	Generation int   `json:"generation"` // 1 for those that it asked, one more for who goes on when such a one has no time left
	Shard      int   `json:"shard"`      // to begin with
}

const (
	// helpFor is how long help is asked for. There has been another tick by the clock by then, which asked again if it had to.
	helpFor = 5 * time.Minute

	// maxGeneration bounds how often one helper hands on to the next.
	maxGeneration = 8
)

// done tells whether a shard has nothing left of what help was asked for.
func (h *Help) done(s timer.Shard) bool {
	if h == nil || s.Watermark < h.Upto {
		return false
	}
	for k, swept := range s.Swept {
		end := h.At - timer.Lags[k].Milliseconds()
		if swept < end-end%60_000 {
			return false
		}
	}
	return true
}

// Turn makes passes until nothing is left that is due, or its time is over; the report is Behind where something is.
//
// A tick by the clock that comes upon a shard with more than a pass is to do asks for help once, one helper for each further shard that
// it has not finished. A helper asks nobody, but for one to go on where it has no time left. So there are never more of them than
// shards for each tick by the clock, and they end: at once where all shards are finished or held by others, and in any case some
// minutes after the tick that asked.
func (t *Ticker) Turn(ctx context.Context, turn Turn) (Report, error) {
	began := t.Dispatch.Elapsed()
	ctx, ended := t.traced(ctx)
	report, err := t.turn(ctx, turn)
	ended(report, err)
	took := t.Dispatch.Elapsed() - began
	t.count(report, took)
	if report.Passes == 0 && turn.Help == nil && err == nil {
		t.Metrics.Tick.Observe(took) // others have every shard, and do its work: for who waits for word of a tick, this was one
	}
	return report, err
}

func (t *Ticker) turn(ctx context.Context, turn Turn) (report Report, err error) {
	now, err := t.Dispatch.Clock()
	if err != nil {
		return report, err
	}
	// Each minute another shard is the first, so that ticks without the time for all of them come to each.
	help := Help{At: now, Upto: t.Dispatch.HorizonAt(now), Shard: int(timer.Minute(now)) % t.Dispatch.Layout.Shards}
	if turn.Help != nil {
		if help = *turn.Help; now > help.At+helpFor.Milliseconds() || help.Generation > maxGeneration {
			t.Log.InfoContext(ctx, "help was asked for too long ago", "at", time.UnixMilli(help.At), "generation", help.Generation)
			return report, nil
		}
	}
	stint := stint{until: turn.Until, work: turn.Work}
	if stint.work == 0 {
		stint.work = t.Work
	}
	if turn.Help != nil {
		stint.help = &help
	}
	open := t.from(help.Shard)
	asked := turn.Help != nil
	var errs []error
	for len(open) > 0 && !t.timeOver(ctx, turn.Until) {
		var behind []int
		for i, n := range open {
			if t.timeOver(ctx, turn.Until) {
				behind = append(behind, open[i:]...)
				break
			}
			left, err := t.pass(ctx, n, stint, &report)
			switch {
			case errors.Is(err, errHeld), errors.Is(err, errDone):
			case err != nil:
				errs = append(errs, fmt.Errorf("shard %d: %w", n, err))
			case left:
				behind = append(behind, n)
				if !asked {
					asked = true
					errs = append(errs, t.ask(ctx, turn, help, slices.Concat(open[i+1:], behind[:len(behind)-1])))
					stint.help = &help // from here on others may have finished a shard before
				}
			}
		}
		open = behind
	}
	if report.Behind = len(open) > 0; report.Behind {
		if help.Generation++; help.Generation <= maxGeneration {
			errs = append(errs, t.ask(ctx, turn, help, open[:1]))
		}
	}
	return report, errors.Join(append(errs, ctx.Err())...)
}

// from are all shards, in turn from one of them on.
func (t *Ticker) from(shard int) []int {
	all := make([]int, t.Dispatch.Layout.Shards)
	for i := range all {
		all[i] = (max(shard, 0) + i) % len(all)
	}
	return all
}

func (t *Ticker) timeOver(ctx context.Context, until time.Duration) bool {
	return ctx.Err() != nil || until > 0 && t.Dispatch.Elapsed() >= until
}

// ask has ticks started, one to begin with each of some shards.
func (t *Ticker) ask(ctx context.Context, turn Turn, help Help, shards []int) error {
	if turn.Ask == nil || len(shards) == 0 {
		return nil
	}
	wanted := make([]Help, len(shards))
	for i, n := range shards {
		wanted[i] = help
		wanted[i].Shard, wanted[i].Generation = n, max(help.Generation, 1)
	}
	t.Log.InfoContext(ctx, "more is due than one tick can do: others are asked to help", "helpers", len(wanted), "generation", wanted[0].Generation)
	if err := turn.Ask(ctx, wanted); err != nil {
		return fmt.Errorf("ask for help: %w", err)
	}
	return nil
}
