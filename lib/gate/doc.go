// Package gate decides who may be in progress now: a gate is a limit, and the runs that were let in under it.
//
// Truth: the gate's item, one for a job that limits its overlap. It holds an entry for each run that was let in, and says nothing of how a run
// has gone on since. That is asked of the runs. It counts the places in its line, which are items of their own; a place is of the run that names it, and
// of nobody where that has gone another way.
//
// # Who holds a place
//
// An entry is a run in one of its openings, claimed for one generation: each reopening on request begins another opening, and an edit may take the
// claim of a run that has not started, and give it again. Its run holds the place from the entry on until it has ended, waits between attempts
// included. No holder is who has ended, is fenced, is scheduled (again), is gone, or stands in another opening or generation.
//
// # Enter
//
// A run enters when it is due, before its start is written, by a write of the gate under the version that was read. So two that enter at once
// meet, and one of them reads again. Nobody takes an entry out when a run ends: whoever finds the gate full reads the runs of its entries,
// strongly and after the gate, and leaves out those that hold no place. An end in an opening is for ever, and a claim that was taken
// is given again for a higher generation only, so an entry that was left out never counts again, and a run that is read as a holder was one at the read of the gate.
//
// # When a step fails
//
// A write of the gate whose outcome is unknown, or that met another, is decided anew over what stands. A crash behind it leaves an entry of a
// run that has not started: the run's message comes again, or its check, and finds the entry to be its own. Should the run end in another way,
// its entry is left out by whoever finds the gate full.
//
// # The line
//
// Who finds no room, or finds others waiting, may join the line: one write of the gate, the run and its place. So nobody waits without a place, and no gate with a
// line looks as if it had none. Places are ordered by rank, nominal time and ID, all known when the run joins: no line is ever sorted again. Whoever makes room lets in from the front,
// by one write of the gate, the runs and their places. See dispatch.Dispatcher.Left for who does.
//
// While the job is paused, nobody is let in but runs that ignore the pause. They stand at the front, by ranks below all times (Forward), or enter past those
// that wait.
//
// # What it does not do
//
// It bounds nothing at a job whose definition did not
// say so when a run was claimed: that run has no entry.
package gate
