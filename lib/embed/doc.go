// Package embed opens the data of a scheduler that is one process, and wires a node over it: Pebble in a folder, or memory, as the
// store, a queue in memory, blobs beside the store. `belfry serve` and programs that embed Belfry stand on the same wiring, so a
// folder that one of them wrote is one that the other opens.
//
// # A data folder
//
// "store" holds the items and the lock, "blobs" the payloads, results and logs that are too large for an item. The lock is taken
// first: while a Data is open, nobody else reads or writes either.
//
// What has expired goes behind the last sweep of the node, not by the clock: after a long downtime nothing is cleaned up that no
// tick has read.
//
// # When a step fails
//
// Open gives back all that it took. A disk that fails later closes Failed: nothing is acknowledged from then on, nothing that was
// acknowledged is lost, and the folder has to be opened again.
//
// # What it does not do
//
// It runs nothing: the node's Run does. It chooses neither clock nor chance; they are handed in.
package embed
