// Command mutants plants bugs into Belfry, one at a time, and tells which test or which simulated history finds each.
//
// A mutant is a patch file in this folder: a mistake that a good engineer could make, with a header that says what it breaks. It is
// applied to a copy of the file, which the Go tool builds in the original's place (-overlay), so neither the product nor the work tree
// knows of it. The killers are the simulation and the ordinary tests; each is tried by itself, so that it is known what either finds
// alone. killers.json keeps what found each mutant, and docs/mutants.md shows it.
//
// Two mutants hold the harness itself: the canary is so broken that every killer must find it, and the sound one changes nothing, so
// none may.
package main
