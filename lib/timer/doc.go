// Package timer is how nothing is forgotten: durable wake-ups in buckets, and the cursors that prove each was looked at.
//
// Truth: the timers' items for what is owed, the shard's item for how far it was seen to. A timer is put with, or before,
// what it guards, and stays until long after; what ends a timer is that a cursor has passed it.
//
// # Where a timer lies
//
// The minute of its Wake and one of 64 buckets make the partition; the wake itself begins the sort key, so a bucket is read
// in the order of time. Wake says when to look; Nominal, what the timer stands for. They differ where something is put off:
// a timer may only be put into a bucket that the ticks have yet to read, or that a sweep will.
//
// The key holds kind, tenant, job or run, generation and nominal time. Two who arm the same timer meet at one key, and the
// second finds it armed. So NextCheck counts from the run's nominal time and not from the present: all chains of checks over
// one run become one.
//
// # The shard
//
//	swept 3 <= ... <= swept 1 <= watermark <= horizon
//	  |  1 h    10 min    2 min  |  claimed, sent | being claimed | nobody may claim here
//
// Horizon (X): published before anything is read; never falls. All that any tick ever does, also one that was stopped for
// hours, it does at or below a horizon that stood here first. Edits rely on it.
//
// Watermark (W): every timer up to it was claimed and sent. It moves after the sends, under the version of the pass.
//
// Reached: the buckets beyond the watermark, where one holds the others up, or a pass has stopped within a minute. What is below is
// done, as below the watermark.
//
// Swept: up to where each of the three second looks has come. Oldest is the least of all cursors: every unended run has a
// timer after it, and no generation that ended well before it has anything left.
//
// # When a step fails
//
// A crash before a cursor's write repeats what lies behind it, which is harmless by the conditions on every write. A
// cursor's write that conflicts means that another tick has the shard; that one does the work again. A shard's lease only
// saves double work. A lease that lies further ahead than its length is from before a step of the clock, and void.
//
// # What it does not promise
//
// That a timer is handled once, or by one. That it is gone when it is done: it expires 60 days after its wake, and an engine
// must not clean it up before the last cursor has passed it. That a timer put behind the last sweep is ever read: writers
// refuse to write late (30 s), and no write may land later than ten minutes after it was sent.
package timer
