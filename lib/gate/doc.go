// Package gate decides who may be in progress now: a gate is a limit, and the runs that were let in under it.
//
// Truth: the gate's item, one for a job that limits its overlap. It holds an entry for each run that was let in, and says nothing of how a run
// has gone on since. That is asked of the runs.
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
// # What it does not do
//
// It keeps no line: who finds no room is skipped, or comes again if it was opened by hand. It bounds nothing at a job whose definition did not
// say so when a run was claimed: that run has no entry.
package gate
