// Package cloud opens the data of a scheduler that many processes share, and wires nodes over it: a table of DynamoDB as the store,
// queues of SQS, a bucket for blobs. Functions, `belfry serve`, `belfry worker` and `belfry tick` on shared engines stand on the same
// wiring, so that what one of them wrote is what the others read. Package embed is its sibling for one process alone.
//
// # Names
//
// The queues of a pool are PREFIX-POOL-high, PREFIX-POOL-normal and PREFIX-POOL-low. All processes have the same pools: whoever does not
// know a pool refuses its jobs, and cannot send their runs.
//
// # Opening asks nobody
//
// Open checks what it is given and makes no request; Node makes one, which reads the layout of the store, tells of its clock, and finds
// out that the table is missing or refused. A function's cold start costs no more. Check asks all engines, for a process that lives
// long and is to fail at its start where an address is wrong; what it asks for needs no right that the work does not need.
//
// # When a step fails
//
// Open and Node hold nothing that has to be given back before they have succeeded. What an engine refuses later is a line that says
// what to do, and nothing of it is fatal: what is durable waits.
//
// # What it does not do
//
// It runs nothing: the node's Run does. It chooses neither clock nor chance; they are handed in. It makes neither table nor queues.
package cloud
