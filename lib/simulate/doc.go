// Package simulate plays scenarios: what would become of the runs of some jobs, in time that no clock measures.
//
// A scenario (scenario.go) has jobs, what their targets do, and what people do when. Play gives the report (report.go) of all runs.
// docs/simulate.md has the document for users.
//
// # What decides
//
// The scheduler itself: control, dispatcher and ticks over the store and the queue in memory, put together as a node does (house.go). Workers
// are elsewhere (lease.Remote): that side of a worker is a call for each step, keeps nothing of an attempt, and outlives the server, which a
// scenario takes down at will. Nothing of what a run becomes is decided here.
//
// # What is simulated
//
// Time, and targets. The clock stands at an instant until all that is due has been done, and goes to the next one then (play.go): of an attempt
// (attempts.go), of the script (lines.go), of a message, or of a timer that the diary knows (internal/virtual). One thing is done after the
// other, and what follows from it before the next: ends, then lines as they stand, then what ticks find, sent in the order of the jobs' names
// (mail.go). There is no goroutine and no wait, so the same scenario gives the same bytes.
//
// An attempt is a place in a heap. Its lease is renewed as often as somebody may notice, a cancel has it renewed at once as in a process of its own
// server, and an attempt that crashes is left to the end of its lease.
//
// # What is seen
//
// The ledger reads each write of a run (ledger.go): the report says what was stored, with the attempts that a record has no room for and the runs
// that have expired. Where a scenario asks for events (events.go), it says each change of a record, too, and what was done with the run's messages.
//
// # A demonstration
//
// DemonstrateOnce (once.go) plays one run to which something goes wrong, over the same house with faulty engines. The scheduler, its leases and its fences
// are a server's own. Its two workers (once_hands.go) and its target (once_target.go), which counts, follow a script: no worker.Worker runs, and when one
// calls, renews, dies or stands still is made up, as are the sentences. A server writes for them. What happens is told as it is written and sent (once_words.go).
//
// # What it does not promise
//
// That it is what a deployment does to the second: a network, a full disk and a slow target are not in it, and a tick by the minute catches up
// in steps of its own. Chance is drawn from the seed alone; without one jitter and waits are as long as they may be.
package simulate
