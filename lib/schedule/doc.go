// Package schedule says when a job fires.
//
// A Spec is what its user writes: a cron expression in a time zone, an interval, or one instant, with bounds. Compile
// makes of it a Schedule, which is a fixed set of instants, its fires. Next gives the smallest one after an instant,
// Last the greatest one in a range, Count how many a range holds. Nothing else decides what fires: whichever tick,
// sweep, catch-up or preview asks, from whichever instant, gets the same fires. That set depends on the Spec and on the
// embedded time zone database alone, not on the host, on the clock, or on what fired before.
//
// # How a fire is found
//
// A cron expression is parsed once, to bitsets. A zone is a table of spans in which its wall clock runs evenly; after
// 2100 its yearly rule gives them. Within a span the search goes over civil dates: month by its bit, then the month's
// days as one word, then hour, minute and second by theirs. A result that lies beyond the span's end is kept, and the
// next spans are tried, with the gap that may lie before each. fires.go states the daylight saving rule and is the only
// file that knows it.
//
// # What is bounded
//
// Fires lie in the years 1970 to 9999. Compile refuses what would never fire, so that a search ends at the latest after
// 40 years, the longest that a 29 February on one weekday is away: 80 spans. An expression has at most 640 bytes.
//
// # What it does not do
//
// It applies no jitter, since a fire is the nominal time by which a run is named. It does not know the present: whether
// a schedule's fires are all over is for the caller to ask of Next.
package schedule
