// Package node is a whole scheduler in one process, alone on its store: control plane, ticks and workers.
//
// It decides nothing. It assembles the parts over the ports that it is given and runs them: a tick every second, a worker
// for each queue, the recovery after a start, and housekeeping. The parts share the store and the queues and nothing else,
// so what holds for many processes holds here.
//
// # What being alone allows
//
//   - The queue may be in memory. After a start it is filled from the store (tick.Ticker.Recover), while the ticks already
//     go.
//   - Leases of another Name are void at once, since whoever held them is gone. So Name must be new at each start, and
//     nobody else may have the store: the engine's lock on its folder sees to that.
//   - A cancel reaches its worker at once.
//   - Swept says up to when every timer has been looked at for the last time, for an owner whose engine cleans up by it and
//     not by the clock.
//
// # When a part fails
//
// A tick that fails is logged, and the next goes on from where it stood. After a third of a lease without a tick that succeeded
// no lease is judged for the length of one: the workers live, and could not renew. A recovery that fails is tried again. A worker that
// gets nothing from its queue waits and asks again. Ready tells when no tick has succeeded for ten of them. Nothing of it is
// fatal: what is durable waits in the store. When the store itself has failed, ending the process is its owner's business.
//
// # Stopping
//
// Run returns when ctx has ended and all parts have: ticks stop where they are, workers drain within the grace. What was
// claimed and not started stands in the store as queued, and the next start sends it.
//
// # What it does not promise
//
// That it is in time after a long downtime: ticks and recovery read each minute since. It looks after one host only.
package node
