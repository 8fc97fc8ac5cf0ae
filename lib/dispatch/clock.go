package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// MaxSkew is how far this host's clock may be from the store's. A host further away claims and starts nothing.
const MaxSkew = 2 * time.Second

// ErrSkewed says that this host's clock is too far from the store's.
var ErrSkewed = errors.New("this host's clock is too far from the store's: set it by NTP")

// steadiness notices a wall clock that was stepped: it moved otherwise than the clock that never steps.
type steadiness struct {
	mu      sync.Mutex
	seen    bool
	apart   time.Duration // wall minus elapsed, when last looked at
	settled time.Duration // on the elapsed clock: until then leases are not judged
	ahead   int64         // Unix ms: up to here a clock that was set back since has been
	doubt   bool          // the clock was stepped, and SureClock has not asked the store since
}

// Clock is the time by the store, in Unix ms, and ErrSkewed where this host must do nothing.
func (d *Dispatcher) Clock() (int64, error) {
	skew := d.Store.Skew()
	if skew > MaxSkew || skew < -MaxSkew {
		return 0, fmt.Errorf("%w: %s apart", ErrSkewed, skew)
	}
	wall := d.Now()
	elapsed := d.Elapsed()
	apart := time.Duration(wall.UnixNano()) - elapsed
	d.steady.mu.Lock()
	defer d.steady.mu.Unlock()
	if moved := apart - d.steady.apart; d.steady.seen && (moved > MaxSkew || moved < -MaxSkew) {
		d.Log.Warn("the host's clock was stepped", "by", moved)
		d.steady.settled, d.steady.doubt = elapsed+d.Lease, true
		if moved < 0 {
			d.steady.ahead = max(d.steady.ahead, wall.Add(-moved).UnixMilli())
		}
	}
	d.steady.seen, d.steady.apart = true, apart
	return wall.Add(skew).UnixMilli(), nil
}

// SureClock is Clock for who ends a run by it: where this host's clock was stepped, the store may not have told yet how far they are apart now, so
// its answer is waited for. That reads a run, once for each step.
func (d *Dispatcher) SureClock(ctx context.Context, r run.Run) (int64, error) {
	now, err := d.Clock()
	for err == nil && d.inDoubt() {
		if _, err := d.ReadRuns(ctx, []run.Run{r}); err != nil {
			return 0, fmt.Errorf("ask the store for its time: %w", err)
		}
		d.steady.mu.Lock()
		d.steady.doubt = false
		d.steady.mu.Unlock()
		now, err = d.Clock()
	}
	return now, err
}

// ClockFor is the time at which an attempt of a run begins, is renewed or ends: of a run that has a deadline SureClock, since so much time is left, and what ends
// then may be its deadline's.
func (d *Dispatcher) ClockFor(ctx context.Context, r run.Run) (int64, error) {
	if r.EndBy != 0 {
		return d.SureClock(ctx, r)
	}
	return d.Clock()
}

func (d *Dispatcher) inDoubt() bool {
	d.steady.mu.Lock()
	defer d.steady.mu.Unlock()
	return d.steady.doubt
}

// Unsettle says that living workers may have been unable to renew their leases, because the store was away: for the length of one
// none is judged.
func (d *Dispatcher) Unsettle() {
	elapsed := d.Elapsed()
	d.steady.mu.Lock()
	defer d.steady.mu.Unlock()
	d.steady.settled = elapsed + d.Lease
}

// Published is told of horizons that stand, by whoever reads a shard: one that is stale tells how far a clock was ahead, also before this process.
func (d *Dispatcher) Published(horizon, now int64) {
	if d.Stale(horizon, now) {
		d.steady.mu.Lock()
		defer d.steady.mu.Unlock()
		d.steady.ahead = max(d.steady.ahead, horizon)
	}
}

// Astray tells whether a run that is put at now has a nominal time (both Unix ms) that lies behind it, as a clock that was behind gave it, or that
// clocks have passed before. A delete, which looks for runs from some time on, need not come upon it: such a run says from the first whose it is.
func (d *Dispatcher) Astray(nominal, now int64) bool {
	return nominal < Recent(now) || d.again(nominal)
}

// again tells whether now is an instant that a clock which was set back since has been at before.
func (d *Dispatcher) again(now int64) bool {
	d.steady.mu.Lock()
	defer d.steady.mu.Unlock()
	return now <= d.steady.ahead
}

// LeaseOver tells whether a run's lease has run out at now, as Clock gave it. After a step of the clock no lease is judged
// for the length of one: by then every living worker has renewed its own, so a jump ends none. A lease further away than
// its length was written before a step back, and is void.
func (d *Dispatcher) LeaseOver(lease, now int64) bool {
	d.steady.mu.Lock()
	unsettled := d.steady.settled > 0 && d.Elapsed() < d.steady.settled
	d.steady.mu.Unlock()
	if unsettled {
		return false
	}
	return lease <= now || lease > now+(d.Lease+MaxSkew).Milliseconds()
}

// whole is from which look-ahead on horizons end with a minute. Buckets hold a minute: a pass that ends within one reads each of its
// buckets twice, once in this pass and once in the next.
const whole = time.Minute

// Ahead is how far beyond its clock a tick's horizon is at the most.
func (d *Dispatcher) Ahead() time.Duration {
	if d.LookAhead < whole {
		return d.LookAhead
	}
	return d.LookAhead + whole
}

// HorizonAt is up to where a tick claims that reads its clock at now: a look-ahead, and where that is long, the rest of its minute.
func (d *Dispatcher) HorizonAt(now int64) int64 {
	horizon := now + d.LookAhead.Milliseconds()
	if d.LookAhead >= whole {
		horizon += whole.Milliseconds() - 1 - horizon%whole.Milliseconds()
	}
	return horizon
}

// Directly is how soon a request must be due for its run to be claimed and sent by whoever takes it, instead of by a tick when its time has come.
// An edit looks for claims on demand that far.
func (d *Dispatcher) Directly() time.Duration { return d.Ahead() + time.Minute }

// Reach is up to where ticks under way may have passed the places of timers: a published horizon, and where that is stale, what clocks of
// now reach. Who is to be looked at again has a timer beyond it: one beyond a stale horizon would keep him waiting until the time has come there.
func (d *Dispatcher) Reach(horizon, now int64) int64 {
	return min(horizon, d.HorizonAt(now+2*MaxSkew.Milliseconds()))
}

// Stale tells whether a published horizon is one that no clock of now can have published: one that was ahead has been set back.
func (d *Dispatcher) Stale(horizon, now int64) bool {
	return horizon > d.HorizonAt(now+MaxSkew.Milliseconds())
}
