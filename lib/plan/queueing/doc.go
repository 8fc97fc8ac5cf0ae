// Package queueing simulates a queue with workers, event by event: how deep it gets, how busy they are, how long runs wait.
//
// # The model
//
// Runs arrive by a Poisson process, or a share of each minute's, or hour's, at its first instant. Each has a priority and waits in its line; lines are
// served by the turns of the real queues (queue.Turns), first come, first served within one. A worker that is free takes up to a batch at
// once and is busy until the slowest of them has ended, as a worker function is; with a batch of one it is a slot of `belfry worker`.
// Durations are constant, exponential or lognormal.
//
// Workers are there from the beginning, or come one after the other until all are, as functions do that Lambda adds to a queue; none goes again.
//
// Everything comes from one seed: the same question has the same answer, to the last bit, on the same architecture.
//
// # How it is known to be right
//
// Where theory has exact results, tests hold the simulation to them within a few standard errors at fixed seeds: M/M/1 and M/M/c by Erlang,
// with the distribution of the wait; M/G/1 by Pollaczek and Khinchine; Little's law; the wait of a burst, to the nanosecond; and that no
// order among priorities changes the mean wait over all of them.
//
// # What it leaves out
//
// Retries, claims, the time that a queue and a store take, how long a function takes to start, and targets that slow down under load.
package queueing
