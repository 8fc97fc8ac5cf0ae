// Package virtual has a scheduler run in time that its owner moves: a clock that stands where it is set, a diary of the instants at which
// there may be something to do, and the passes that ticks would make of them. The decisions are those of every program, by the same code.
//
// The diary learns from the writes to the store when timers wake. A queue in memory tells by itself when it gives its next message
// (local.Queue.Next). Between these instants nothing is due, so nobody misses the passes that a node makes each second: what they would have
// left in the store is put there before the next one that does something.
package virtual
