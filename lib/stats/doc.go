// Package stats counts runs by the minute and the hour: how many were due, what became of them, how late they started and how long they took.
//
// Truth: the runs. A Sum is made from them by the sweeps, which read every run of a minute anyway, so a run costs nothing for being counted.
// A tenant's minute is one item for each shard of the ticks that saw runs of it, and a minute without runs is none.
//
// # Who writes what
//
// The first sweep of a minute puts a Sum of each minute in which runs that it came upon were due: mostly of the one that it sweeps. A timer may stand
// for fires of the next minutes too, and missed fires may be made up for long after their time. So the key holds both: the minute in which the runs
// were due and the minute that was swept. A Sum is a function of what that sweep read, and whoever sweeps the minute again puts the newer reading in
// its place and adds nothing.
//
// A Sum names the runs that had not ended. The later sweeps read these alone, and move each that has ended by then into the counts, in one
// write under the version that was read. So each is moved once, whoever else does the same.
//
// When the last sweep has passed an hour, each shard adds its own Sums up into one of the hour, a tenant at a time, under the version of the hour that was
// known before the minutes were read: no older reading takes the place of a newer one. What is left of that, the ticks note, and go on with it minute by minute.
//
// LateHours after that come the last looks: the runs that are named still are moved into the counts as they are, and the hours that have such are written
// again. What had not ended by then stays open.
//
// # When a step fails
//
// Nothing of the protocol rests on a Sum. One that could not be written leaves its minute without a point, or with an older one, and the sweep goes on. An hour
// that could not be written, and a last look that failed, are tried again until they succeed, for as long as the minutes are kept.
package stats
