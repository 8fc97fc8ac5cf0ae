// Package run is one execution of a job: its name, its record, and the graph of its states.
//
// Truth: the run's item. A message in a queue, a timer and a worker's memory are beliefs about it; each is checked by
// writing under the version that was believed.
//
// # State model
//
// decide.go holds every edge as a pure function: a run as read and what happened, to the run as it is to be written.
// docs/run.md draws the graph, and a test compares the two.
//
//	nothing, fenced -> queued -> running -> succeeded | failed | dead | cancelled | unknown
//	scheduled ------^       ^----' |  ^
//	                               v  |
//	                             retrying
//
// A fire's run is named by job and nominal time, so all who come upon a fire write to one key. A run on demand has a random
// part. Fenced is no run: it is where an edit says that no claim of a lower generation may pass.
//
// # What holds
//
//   - One start wins. Start moves the version; whoever believed the old one gets a conflict, with what stands.
//   - A version never falls while the run is there, and Fence is the version that the newest attempt started under. A late
//     worker asks Holds, and its write is refused (P6).
//   - An end is written under a version too, so there is one (P7). Only Reopen leaves it, on somebody's request.
//   - Failures count what the job did, Crashes what befell its workers. Neither eats the other's budget. Attempt counts
//     both, and goes on over every Reopen.
//   - At most once: Fail and Crash never lead to a second attempt by themselves (P5). HandBack is asked then only where the
//     target was not called; in doubt its callers use Crash, which says unknown.
//   - A record stays under 1 KB until its run ends: a payload over MaxInline is a blob, errors and old attempts are cut. A result over
//     MaxResult is a blob, and the record under 4 KB with a smaller one.
//
// # When a step fails
//
// A write that may have happened is sent again as it is; its attempt ID makes a write that meets itself a success. A crash
// before a write leaves the run as it was, with the timer that led to it; a crash after it leaves the new state, for whose
// wake-up the caller has cared: before the write, or in it (package dispatch).
//
// # What it does not do
//
// It reads no clock and no store, and it does not check that an edge is taken by the right one: that Start waits for the
// run's time is the worker's business, that a redrive is allowed is package control's.
package run
