// Package target calls what a run is for: an HTTP address, a process on this host, a Go function, a resource of AWS, for which
// package awstarget speaks to AWS, or a mail, for which package mailtarget speaks to a mail server.
//
// It makes one attempt and says how it ended. It knows nothing of leases, stores and retries: the caller has recorded the
// attempt before it calls, and decides afterwards. What the caller can rely on:
//
//   - One Call is at most one delivery when Call.AtMostOnce is set. Go's HTTP transport resends requests by itself on a
//     connection that it used before; such calls get a connection of their own, and no header or body that invites it.
//   - A call ends. The context bounds it, and Config.Grace, twice over, what comes after. Memory is bounded by the calls in
//     flight: answers are cut at MaxResultBytes, and a handler that cannot be stopped is counted and, from a number on,
//     costs this worker its handlers.
//   - A *Failure is a verdict on the job; any other error is none. KindConnect, KindRefused, KindPayload, KindSecret and KindStart
//     mean that the target has seen nothing of this attempt; with KindTimeout, KindLost and a cancellation nobody knows,
//     unless the cancellation wraps ErrUnsent.
//   - A worker that lacks what a target needs says ErrNotHere and has done nothing: the run is another worker's.
//   - What a job may reach is the operator's decision, taken on the address that is connected to and not on its name, and on
//     ARNs as they are named, those of roles too, and on who is mailed to.
//   - Secrets are looked up at each attempt and forgotten after it. Result, failure and log are without them, in the forms that
//     the veil knows; docs/secrets.md says which, and what it cannot find.
//   - No panic of a handler, and no process that ignores its standard input, its signals or its output, harms the worker.
//
// It does not promise that an attempt which timed out has stopped: a process that left its group, a handler that ignores
// its context and a server on the other side go on. The fence (Call.Fence) lets the other side tell the old from the new.
package target
