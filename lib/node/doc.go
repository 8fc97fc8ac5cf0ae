// Package node is a scheduler in one process: control plane, ticks and workers. It is alone on its store and does all of it, or one of
// many that share a store (Config.Shared), each with the roles that it is given.
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
// # What sharing takes away
//
//   - Ticks take turns over the shards under the process's own Name, which is new at each start. Where one dies, others have its shards
//     when its leases are over: within the look-ahead, which is long for that.
//   - A start recovers nothing and voids nothing: the queues kept what they held, and who holds a lease may live.
//   - A cancel reaches a worker elsewhere with the next renewal of its lease.
//   - What has expired goes by the store's clock, so timers stay for as long as ticks may be away.
//   - Look-ahead and Lease are the same in all processes: a shorter look-ahead would set back what others have done, and a lease
//     further away than one's own counts as void.
//
// Who does not tick does not measure the queues, and deletes no blobs: that is done by those who do.
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
