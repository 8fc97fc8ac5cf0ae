// Package lease hands runs out to workers under a lease and a fence, and takes back what came of them: the side of a worker that
// decides and writes. Package worker is the other side, which calls targets.
//
// Truth: the run's item. A message only says that a run may be started; it carries the run as it was written, so that the
// start is one conditional write. When that conflicts, the run as it stands decides.
//
// # One delivery
//
//	message -> [run read, if delivered before] -> OFFER -> its time? -> [ENTER] -> START -> renewals -> END -> message deleted
//
// The runs of one Take that are due are started by one call of the store, and attempts that end about the same time are ended by one, and
// their messages deleted ten at a time: each write stands for itself, and what fails among them goes on alone.
//
// What each step makes sure of:
//
//   - Before START nothing has happened: handing the message back is always right. A run that is not due waits here up to a
//     second, longer in the queue. A payload in a blob is read before, so that a store of blobs that is away costs no
//     attempt.
//   - ENTER is for runs whose job bounds how many are in progress (enter.go): the run takes a place at its gate, or is skipped, or comes again. Who
//     has had an attempt in this opening holds a place, and does not ask. A gated run is started by itself, not with others of its Take.
//   - START is durable before anybody hears of it: number, lease, fence. What dies from here on is known to have begun.
//   - A renewal extends the lease and the message's invisibility. It hears of a cancel, and of having been fenced off. Where it comes upon a
//     write that has changed nothing, somebody reads the attempt's log in another process (reader.go), and it is shown for a while (showing.go).
//   - END is a write under the version that this attempt holds. A cancel's mark in between is taken along; anything else
//     means fenced: nothing is written, and the result is dropped (P6).
//
// # When a step fails
//
//   - START's answer is lost: tried again as the same write. If the outcome stays unknown, nothing is called. Should the
//     start have happened, this process remembers that it never began; else its lease ends it.
//   - The process dies in the call: the lease runs out; redelivery or a check counts a crash. At most once: unknown.
//   - The log or the result cannot be kept: noted, and the end is written all the same.
//   - END cannot be written: the worker repeats it. Where it gives up the lease runs out, and that counts a crash.
//   - The message cannot be deleted: it comes again, finds the end, and is dropped.
//
// A message older than MessageLife starts nothing, so that none outlives its run. One of a newer format goes to another
// worker.
//
// # What it does not promise
//
// That a target is called once: only at most once is, by START. That runs go in order.
package lease
