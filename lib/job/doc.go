// Package job is a job: a named definition of what to run and when, and the generations that edits make of it.
//
// Truth: the job's item (Key). It holds the newest definition, its generation, and in Past which older generations were
// replaced and when. Nothing else says which generation is in force; what the Book remembers of a job (Known) tells that it
// exists and no more.
//
// # Generations
//
// Each edit makes a generation: one more than the last, or the Unix ms of the edit if that is higher. A delete leaves a
// tombstone for KeepPast, so a name that is used again goes on from it, and later from the clock, which is higher. No
// generation is ever used twice. That is what lets a fence, a timer and a claim say "of this definition" by a number.
//
// A fire of the newest generation is in force while the job is Active. One of a past generation is in force up to its Until,
// the instant of the edit that ended it (InForce). So every instant belongs to one generation, and an edit neither loses a
// fire nor doubles one.
//
// A definition of a given generation never changes. It is an Edition: compiled once, remembered as long as there is room,
// and kept at PastKey by the same write that replaces it. A run keeps the generation that it was claimed under through all
// its attempts.
//
// # When a step fails
//
// The job, the definition that it replaces and the first timer of the new generation are one Write, by package control. A
// crash leaves all or none. Readers may read a job and a past definition apart, with an edit in between: who misses a
// definition then has read too early, and finds it the next time.
//
// # What it does not do
//
// It neither decides what fires (package schedule) nor what an edit means for what was claimed ahead (package control). A
// past definition is gone when the longest run of its generation has ended, and is kept no longer: PutPast says when. A run that waited for
// its start until then cannot be run.
package job
