// Package dispatch turns what is due into claimed and sent runs: the part of the protocol that ticks, sweeps, edits and
// requests share, so that they cannot drift apart.
//
// Truth: the store. A Dispatcher holds no state but caches and may stand in any number of processes. It believes what it is
// told of a run and finds out by writing: each wish is decided anew over what stands, until it is written or moot.
//
// # Order of writes
//
// For fire timers (Fires):
//
//	To -> successor -> what stands among missed fires read -> head (first claim, or the decision over these) -> claims -> send -> timers for what was refused
//
// and only then may the caller's cursor move. For requests (Requests): run put as scheduled, where it is missing -> job read
// -> claim -> send. For checks (Check): the next check -> what is needed. For the end of an attempt (Prepare, Do): the run,
// its dead letter, the timer of a long wait and those of callbacks in one Write; starts and ends that write the run alone are tried together first (TryEach).
//
// The rule behind all of them: what will wake a thing is durable before the thing needs it.
//
// # When a step fails
//
//   - A crash anywhere: the timer is still before the cursor. Who reads it again finds To grown, the successor standing, its
//     claims Standing, and sends them again.
//   - A conflict: somebody else wrote. The decision is taken again over what stands, at most maxRounds times.
//   - Throttled, or outcome unknown: tried again with the same attempt IDs. A single run that is still refused is put off by
//     a timer of its own beyond the horizon, so that one partition makes nothing late elsewhere.
//   - Not sent: a check timer just beyond the horizon. A run sent twice is started once.
//   - A record that cannot be read is logged and left; its neighbours go on.
//   - A schedule that does not advance parks its job with the reason.
//
// # Missed fires
//
// A fire is late where the first horizon beyond it was published more than job.Grace after it, which stands in the shard
// (timer.Shard.Gaps), or where it was left for over job.NewestWithin. It is missed then, unless it is the generation's newest and no
// older than that, and the job's policy decides (plan.go). The decision is a skipped run at the first missed fire, put where a claim
// could go: one decision gets there, and all others adopt it. Fires up to the horizon of the tick that decided, or up to the next
// gap, are then claimed however late, since that tick may have claimed some of them. A run at the head means that a tick was here in
// time, and may have stopped among its claims; these end a look-ahead and MaxSkew after that run was made, or at a gap before that. Beyond, it is
// decided anew. Where two timers stand for the same fires, the decision of the one ends where the other's begins, or counts nothing where it
// begins within that, and neither claims what the other has dropped (dropped.go).
//
// What makes up for one has a place in time (pace.go). Where that lapsed while nobody was there, the run does not start: whoever has its message
// asks for another place (lapsed.go).
//
// # Gates
//
// A run whose job bounds its overlap enters its gate when it is due, before its start is written (Enter, and package gate). It is called by whoever
// starts runs, and never by what claims them: a claim is made ahead, and may wait for long. The runs of one process that want into one gate enter by
// one write, and those that find no room are skipped when the others are in. Two conflicts, and they give up their workers' slots: nobody waits
// there for a gate that is contended.
//
// # Workflows
//
// The run of a workflow is opened by whoever gets its message (Open), and is Running without a lease from then on. Its steps are runs under keys of
// their own (run.ID.Step). Who has ended one calls Left before the message of that goes, which decides by that end and a few others where that will do
// (walk.go). Cancels, checks and messages that come again call Follow, which reads all steps. Both
// read behind what their caller wrote, and put what follows where nothing stands, so any number may call them at once. Who starts a step asks MayStart.
//
// # Callbacks
//
// A definition may name jobs that are called when a run has ended. The timer of such a request is written with the end (callback.go), so a crash leaves
// both or neither; whoever wrote it makes and sends the run, and the first sweep makes what is missing. Only ends that go by Prepare call something: a cancel,
// and what is skipped, do not.
//
// # Time
//
// Clock is the store's time. A host further than MaxSkew from it gets ErrSkewed and must claim and start nothing (P3). When
// the wall clock was stepped, no lease is judged over for the length of one: every living worker has renewed its own by
// then.
//
// # What it does not promise
//
// That a message arrives, or arrives once; that a run starts in time. It moves no cursor and publishes no horizon: that its
// callers did so first is what makes its claims safe.
package dispatch
