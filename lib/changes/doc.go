// Package changes tells whoever listens what has changed in a store, as it changes, so that pages need not ask all the time whether
// anything has.
//
// What it tells are hints: the name of a job, the ID of a run, never what they hold. Whoever gets one asks for the rest, with the rights that
// that takes. A hint may be wrong, late or lost, and nothing but the freshness of a page hangs on it: there is no log of hints, and who was
// away for a moment asks for all anew.
//
// A Hub knows what its own process writes. Where other processes write to the same store, it does not hear of that, and who shows its
// hints must say so.
//
// A store that is wrapped by Store costs one look at a number more, for each write, while nobody listens. Listeners are bounded in number, and
// what waits for one of them is bounded too: one that is too slow is told that all may have changed.
package changes
