// Package embed wires a whole scheduler in one process out of its adapters: Pebble or memory as the store, a queue in memory,
// blobs as files or in memory, and a node over them. `belfry serve` and programs that embed Belfry stand on the same wiring, so
// a folder that one of them wrote is one that the other opens.
//
// # A data folder
//
// "store" holds the items and the lock, "blobs" the payloads, results and logs that are too large for an item. The lock is
// taken first: while a Process lives, nobody else reads or writes either.
//
// # When a step fails
//
// Open gives back all that it took. A disk that fails later closes Failed: nothing is acknowledged from then on, nothing that
// was acknowledged is lost, and the folder has to be opened again.
//
// # What it does not do
//
// It runs nothing: Node.Run does. It chooses neither clock nor chance; they are handed in.
package embed
