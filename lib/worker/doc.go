// Package worker calls the targets of runs and supervises the calls.
//
// It decides nothing about a run. It takes runs from a Source, starts them there, keeps their leases while it calls, and reports
// how they ended, until that is known to be written. Package lease is the source beside the store; package client has the one
// that reaches a server from elsewhere. The same worker stands on either.
//
//	take -> can this worker? -> START -> call, renewing -> END
//
// What was taken together is started together, each call has a goroutine, and an end is handed to the source, which tells when it is
// written: so a call that has returned keeps its place and its lease until then, and no goroutine.
//
// # What holds
//
//   - Before START answers nothing is called.
//   - During the call the lease is renewed every third of it. The renewal hears of a cancel, and of having been fenced off:
//     then the call is stopped and its result dropped. While nobody answers, the call goes on.
//   - END is repeated until it is written, fenced, or refused, at most for 12 hours. A worker that is being stopped tries once
//     more and gives up; then the lease runs out, and that counts a crash.
//   - A *target.Failure is a verdict on the job. Any other error is none; the attempt crashed or was handed back.
//   - A call that could not begin for want of something (target.ErrShort) is tried again under the same attempt, for a minute, one such at a
//     time; then it is handed back. Meanwhile nothing more is taken, unless it is one
//     destination alone that calls cannot begin to.
//
// # Stopping
//
// When its context ends, a worker takes nothing more, lets attempts go on for the grace, then stops them. At least once they
// are handed back, which counts as neither failure nor crash; at most once they are unknown, unless nothing was sent yet
// (target.ErrUnsent). A Pass does the same with attempts that are under way when its time is over.
//
// # What it does not promise
//
// That a stopped call has no effect any more. A run that has lost a worker before goes alone among its kind, so that the one
// that kills is not mistaken for its neighbours; a slow one holds up the others.
package worker
