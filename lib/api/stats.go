package api

import (
	"context"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What a window of stats may be, and a begun step more: who reckons back from now does so in whole seconds.
const (
	shownStats   = time.Hour      // unless told otherwise
	minutesStats = 24 * time.Hour // by minutes at the most
	hoursStats   = 32 * 24 * time.Hour
)

type statsWindow struct {
	From time.Time `query:"from" doc:"the beginning of the window, rounded down to a whole step; an hour before its end by default"`
	To   time.Time `query:"to" doc:"its end, rounded up to a whole step; now by default"`
	Step string    `query:"step" enum:"1m,1h" doc:"length of a point. By 1m the window is at most 24 h, by 1h at most 32 days. Default 1m up to 6 h, else 1h"`
}

func (a *api) stats() {
	register(a, operation{id: "get-stats", method: http.MethodGet, path: "/v1/stats", tag: "runs", tagged: true, scope: access.Read,
		summary: "Count the runs that were due in each minute or hour, by what became of them, with how late they started and how long they took"}, a.getStats)
}

// stepsOf are the lengths that a point may have, 0 where none is asked for.
var stepsOf = map[string]time.Duration{"1m": time.Minute, "1h": time.Hour}

// settle gives the window in whole steps.
func (w statsWindow) settle(now time.Time) (window, error) {
	from, to := w.From.UTC(), w.To.UTC()
	if w.To.IsZero() {
		to = now.UTC()
	}
	if w.From.IsZero() {
		from = to.Add(-shownStats)
	}
	if !from.Before(to) {
		return window{}, invalid.Field("from", from.Format(time.RFC3339), "a time before to, which is "+to.Format(time.RFC3339))
	}
	settled := windowOf(from, to, stepsOf[w.Step], time.Hour)
	most, want := minutesStats, "at most 24 h before to with step=1m; step=1h takes up to 32 days"
	if settled.step == time.Hour {
		most, want = hoursStats, "at most 32 days before to"
	}
	if to.Sub(from) >= most+settled.step {
		return window{}, invalid.Field("from", from.Format(time.RFC3339), want)
	}
	return settled, nil
}

func (a *api) getStats(ctx context.Context, p *statsWindow, in input[noBody]) (*answer[wire.Stats], error) {
	w, err := p.settle(a.Now())
	if err != nil {
		return nil, err
	}
	found, err := a.Control.Stats(ctx, in.tenant, w.from, w.to(), w.step)
	if err != nil {
		return nil, err
	}
	shown := wire.Stats{From: w.from, To: w.to(), StepSeconds: int(w.step.Seconds()), SweptUntil: found.Swept, Points: make([]wire.StatsPoint, len(found.Points)),
		LatenessBoundsMS: boundsForm(&stats.LatenessBounds), DurationBoundsMS: boundsForm(&stats.DurationBounds), Totals: countsForm(&found.Totals, found.Unended)}
	for i := range found.Points {
		shown.Points[i] = wire.StatsPoint{At: found.Points[i].At, StatsCounts: countsForm(&found.Points[i].Counts, found.Points[i].Unended)}
	}
	return &answer[wire.Stats]{shown}, nil
}

func countsForm(c *stats.Counts, unended int) wire.StatsCounts {
	return wire.StatsCounts{Due: c.Due(), Succeeded: c.In(run.Succeeded), Failed: c.In(run.Failed), Cancelled: c.In(run.Cancelled), Skipped: c.In(run.Skipped),
		Dead: c.In(run.Dead), Unknown: c.In(run.Unknown), Open: c.Open - unended, Unended: unended, Retries: c.Retries,
		Lateness: histogramForm(&c.Lateness, &stats.LatenessBounds), Duration: histogramForm(&c.Duration, &stats.DurationBounds)}
}

func histogramForm(h *stats.Histogram, bounds *stats.Bounds) wire.StatsHistogram {
	ms := func(q float64) float64 { return float64(h.Quantile(bounds, q).Microseconds()) / 1000 }
	return wire.StatsHistogram{Count: h.Count(), Buckets: h[:], P50: ms(0.5), P90: ms(0.9), P99: ms(0.99)}
}

func boundsForm(bounds *stats.Bounds) []int64 {
	shown := make([]int64, len(bounds))
	for i, b := range bounds {
		shown[i] = b.Milliseconds()
	}
	return shown
}
