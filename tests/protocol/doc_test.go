// Package protocol_test proves the protocol over the real code: several hosts with their own clocks and faults on one store
// and one queue, and no time but what a test gives. Scripts under testdata say what happens and show what came of it; the
// crash points of a set of scenarios are tried one by one; random interleavings look for what nobody thought of. All of them
// end in the same invariants.
package protocol_test
