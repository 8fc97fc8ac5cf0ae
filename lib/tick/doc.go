// Package tick makes passes over the shards: publish a horizon, claim and send what is due, move the watermark, sweep.
//
// Truth: the shard's item (package timer). All that a Ticker keeps between two passes is where it has moved cursors over nothing, which
// it writes with the next lease, which shards it could not take, and, where it is alone, how far it is with the sweep of a long minute: a
// function that is called once a minute and a loop that calls it every second do the same.
//
// # One pass
//
//  1. take: epoch + 1, lease, horizon = max(horizon, now + look-ahead), one write. Nothing is read before, and the clock is
//     not read for claims after.
//  2. due: timers in (watermark, horizon], a minute at a time, all buckets and pages; the jobs after the timers.
//  3. Fires, requests and checks go through package dispatch: claimed and sent.
//  4. sweeps: whole minutes at their lags, each with its cursor, which moves last. Where a process is alone, a long minute takes several passes.
//  5. The watermark and the cursors, under the version of this pass. A pass that came upon nothing leaves that to the next.
//
// The lease is renewed by time, and with it is written how far each bucket has come, after each page. So a pass may take long,
// stop within one instant, and die, at the cost of some seconds' work.
//
// A pass is bounded by Config.Work and by the time of its Turn, and says Behind where it stopped for that; memory is bounded by pages
// of 256 timers, Parallel at a time.
//
// # Turns and helpers
//
// Turn is for who is called: passes until nothing is left or the time is over. A tick by the clock that leaves something in a shard asks
// for helpers, one for each further shard that is not finished; a helper only for one to go on for it. Leases keep them apart.
//
// # Sweeps
//
// The first look may miss: a write that lands late, a timer that an edit put behind the watermark, a message that is lost, a
// process that died between two steps. Three second looks find a fire or request without its run, and a run without its end.
// The first gets what the main pass would have given it, the second a check timer. The lags are 2 and 10 minutes and an
// hour; the last is longer than any write may be late, so that what it has passed is complete.
//
// What it finds is bounded by what is due and not by how many jobs there are; a bucket that has not changed since the first
// sweep is not looked into again.
//
// Since the first sweep reads every run of a minute, it also writes the items by which runs are found by time, before its cursor
// moves; a later one lists those of buckets that have changed. An item is named by what it holds, so sweeping twice, or by two
// ticks at once, overwrites nothing.
//
// # When a step fails
//
//   - After 1: nothing is owed. A horizon that nobody worked up to is a promise not to look further, no more.
//   - In 2 or 3: the watermark stays where the bucket failed, and with it the sweeps; the other buckets go on, and the shard says
//     how far they have come.
//   - In 4: the cursor stays, and the minute is swept again.
//   - In 5, by conflict: another tick has taken the shard. It does the same work again.
//   - No pass for long: the store may have been away, and for the length of a run's lease none is judged.
//   - No pass for longer than runs are kept: what a pass of before may have claimed is not made again.
//   - A timer that cannot be read is told of and passed over. One of a newer format holds its bucket and so the watermark,
//     since this build cannot know what it would lose. A job that cannot be read has its fire put off.
//   - A tick that is stopped anywhere and wakes: its claims lie below its published horizon, and edits have fenced there;
//     its cursor's write conflicts.
//
// # Recover
//
// For a process alone on its store whose queue is empty, after its start. It reads from the first sweep's cursor to the
// furthest regular check, where every unended run has a timer, and gives each a check. Leases that its caller calls dead are void.
//
// # What it does not promise
//
// That one tick works at a time: the lease is courtesy. That a pass is quick after a long downtime: it goes through each
// minute.
package tick
