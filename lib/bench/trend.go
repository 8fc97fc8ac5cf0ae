package bench

import "math"

// Trend is a line through the looks of a soak, by least squares.
type Trend struct {
	Slope   float64 `json:"slope"`
	Change  float64 `json:"change"`  // of the line, from the first look to the last
	Scatter float64 `json:"scatter"` // of single looks about the line: the root of their mean squared distance
	Verdict string  `json:"verdict"`
}

// Verdicts on a trend. They compare it with its own scatter, and judge no amount.
const (
	Flat    = "flat"    // the change is within what single looks scatter
	Rising  = "rising"  // it is more
	Falling = "falling" // it is more, downwards
	Unclear = "unclear" // there are too few looks
)

// trendOf fits y over x.
func trendOf(x, y []float64) Trend {
	if len(x) < leastLooks {
		return Trend{Verdict: Unclear}
	}
	n := float64(len(x))
	var meanX, meanY, xx, xy float64
	for i := range x {
		meanX, meanY = meanX+x[i]/n, meanY+y[i]/n
	}
	for i := range x {
		xx, xy = xx+(x[i]-meanX)*(x[i]-meanX), xy+(x[i]-meanX)*(y[i]-meanY)
	}
	if xx == 0 {
		return Trend{Verdict: Unclear}
	}
	t := Trend{Slope: xy / xx}
	t.Change = t.Slope * (x[len(x)-1] - x[0])
	var squares float64
	for i := range x {
		off := y[i] - meanY - t.Slope*(x[i]-meanX)
		squares += off * off
	}
	t.Scatter = math.Sqrt(squares / n)
	switch {
	case math.Abs(t.Change) <= 2*t.Scatter || t.Change == 0:
		t.Verdict = Flat
	case t.Change > 0:
		t.Verdict = Rising
	default:
		t.Verdict = Falling
	}
	return t
}

// trendsOf leaves out the first quarter of the looks.
func trendsOf(rows []SoakRow) (t SoakTrends) {
	rows = rows[len(rows)/4:]
	var runs, hours []float64
	for _, row := range rows {
		runs, hours = append(runs, float64(row.Runs)), append(hours, row.Seconds/3600)
	}
	over := func(x []float64, value func(SoakRow) float64) Trend {
		var y []float64
		for _, row := range rows {
			y = append(y, value(row))
		}
		return trendOf(x, y)
	}
	return SoakTrends{
		RSS:      over(runs, func(r SoakRow) float64 { return float64(r.RSS) }),
		Heap:     over(runs, func(r SoakRow) float64 { return float64(r.Heap) }),
		Lateness: over(hours, func(r SoakRow) float64 { return r.P99 }),
		Disk:     over(runs, func(r SoakRow) float64 { return float64(r.Disk) }),
		Routines: over(hours, func(r SoakRow) float64 { return float64(r.Goroutines) }),
	}
}
