// Package worker takes messages, starts runs under a lease, calls their targets, and writes what came of it.
//
// Truth: the run's item. A message only says that a run may be started; it carries the run as it was written, so that the
// start is one conditional write. When that conflicts, the run as it stands decides.
//
// # One delivery
//
//	message -> [run read, if delivered before] -> its time? -> can this worker? -> START -> call -> END -> message deleted
//
// What each step makes sure of:
//
//   - Before START nothing has happened: handing the message back is always right. A run that is not due waits here up to a
//     second, longer in the queue. A payload in a blob is read before, so that a store of blobs that is away costs no
//     attempt.
//   - START is durable before the target is called: number, lease, fence. What dies from here on is known to have begun.
//   - During the call the lease and the message's invisibility are renewed every third of the lease. The renewal hears of a
//     cancel, and of having been fenced off. While the store does not answer, the call goes on.
//   - END is a write under the version that this attempt holds. A cancel's mark in between is taken along; anything else
//     means fenced: nothing is written, and the result is dropped (P6).
//
// # When a step fails
//
//   - START's answer is lost: tried again as the same write. If the outcome stays unknown, nothing is called. Should the
//     start have happened, this process remembers that it never began; else its lease ends it.
//   - The process dies in the call: the lease runs out; redelivery or a check counts a crash. At most once: unknown.
//   - The target fails: a *target.Failure is a verdict on the job. Any other error is none; the attempt crashed or was
//     handed back.
//   - The log or the result cannot be kept: noted, and the end is written all the same.
//   - END cannot be written: tried until the store is back, at most for MessageLife. A worker that is being stopped gives
//     up; then the lease runs out, and that counts a crash.
//   - The message cannot be deleted: it comes again, finds the end, and is dropped.
//
// A message older than MessageLife starts nothing, so that none outlives its run. One of a newer format goes to another
// worker.
//
// # Stopping
//
// When its context ends, a worker takes nothing more, lets attempts go on for the grace, then stops them. At least once they
// are handed back, which counts as neither failure nor crash; at most once they are unknown.
//
// # What it does not promise
//
// That a target is called once: only at most once is, by START. That a stopped call has no effect any more. That runs go in
// order. A run that has lost a worker before goes alone among its kind, so that the one that kills is not mistaken for its
// neighbours; a slow one holds up the others.
package worker
