// Package calendar counts what a calendar shows: the days of a zone's clock, and how many runs of all jobs are due in each stretch of the time
// to come.
//
// # Days
//
// A day begins at the first instant at which its zone's clock shows its date, and ends where the next one begins. So days follow each other
// without a gap and without an overlap, whatever the clock does: a day on which it is put forward has 23 hours, one on which it is put back
// has 25, one that a place has skipped has none, and where midnight is skipped a day begins at what the clock shows instead.
//
// # Load
//
// A fire is counted where its run may start: at its time and its share of the job's jitter, which is the same here as in a tick. Jobs that
// are paused, on demand, or parked are the caller's to leave out.
//
// The work has a bound in fires. What is beyond it is not estimated: the count ends earlier, at an instant that it tells, and all before
// that is exact.
//
// Everything here is a function of its arguments.
package calendar
