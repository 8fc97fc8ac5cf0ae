// Package sim runs Belfry's own code for simulated hours in seconds, under every fault, from one seed that replays exactly.
//
// # What is real
//
// Hosts are made of lib/node with all that it runs (ticks, sweeps, recovery, housekeeping, workers), of lib/api's handler over it, and,
// where a shape says so, of the ticks of lib/lambda, which are called each minute and remember nothing. Clients are lib/client's. Items
// lie in lib/store/memory, messages in lib/queue/local. The simulator stands between them and brings the faults: it decides when an
// operation happens, and how it ends, never what it does.
//
// # Grants
//
// A world lives in a bubble of testing/synctest, whose clock goes on only while everybody waits. That alone replays nothing: goroutines
// that are awake at one instant run in any order. So everything that one goroutine does and another could see is an operation that asks
// for a grant: each call of the store (in a third of the worlds each key of a call by itself: Shape.Whole), each call of a queue and of
// the blobs, random numbers, a call that reaches its target and its answer that comes back, a request and its answer, whatever an Actor
// does. The scheduler waits until the bubble is still, sorts what has newly arrived by what it is about, picks one by seed, does it
// while all stand still, and lets its goroutine go on. Between two grants goroutines touch nothing that others see, so their order does
// not matter.
//
// Sorting needs that two operations can be told apart. Where who, what and about what are the same, the goroutines are asked for their
// numbers: on one processor these are in the order in which one parent began them. So a process of the simulation has one processor
// (GOMAXPROCS 1), and uses more by more processes.
//
// Product code keeps to four rules for this: no mutex is held over a request, since who waits for one never stands still; the order
// of requests follows from what was read, not from the order of a map; a context that has ended is looked at before a select that may find something else ready too, of
// which it takes any; and what goroutines do to each other that are awake at one instant,
// by a counter or a list that they share, comes to the same whoever is first. They are awake together where one has just begun several, and
// where they look into buckets that pass at once. On a machine with nothing else to do they run in an order that is nearly always the same; on a
// busy one any of them is preempted anywhere. Config.Yields makes an order of that kind at any time.
//
// What happens too often to be a step: a tick looks into 64 buckets of each minute, most of which nobody ever wrote to. Such a look
// sees nobody's state, and passes at once, but for some seeds that grant a part of them. A receiver waits in the simulator until there
// is something to be received, and the depth of a queue is read at once.
//
// # What is drawn
//
// Draw gives the Mix of a seed: most things are off in most worlds, so that no fault hides behind another (swarm testing). Streams of
// random numbers are apart: one for each kind of fault, each client, each host's IDs, and one for the order. A Mask switches things off
// and leaves all other draws as they were; Shrink looks for the widest under which the same promise is still broken.
//
// # Time
//
// World.Now is the true time. Each host has a clock of its own, which may be off, drift and be stepped; its elapsed time is true, as
// that of a process is. A store that is shared knows the true time, and hosts learn of it with each answer; where a node is alone, its
// clock is the store's. The store's writes that are late come within ten minutes, which is the assumption that the protocol states.
//
// # What is checked
//
// tests/oracle is told of every change of the store, every call of a target and every request with its answer, by the true time. It
// looks over all that is stored every 10,000 steps, and once more after the calm: when the faults are over, all that was accepted has
// to end within a bound (docs/simulation.md).
//
// # Replay
//
// A hash goes over every step, its instant, its outcome, and every version and value that the store changed to. TestTwice runs seeds
// twice, with Yields the second time, and shows where two traces part. `make sim SEED=7` prints each step of a world, and what it changed.
package sim
