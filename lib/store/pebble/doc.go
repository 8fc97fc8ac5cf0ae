// Package pebble keeps a store in a folder of one machine, in Pebble, a log-structured merge tree. It is the engine of
// `belfry dev` and `belfry serve`; docs/store.md has its figures.
//
// # A write
//
// The caller's goroutine encodes the batch as though every condition held, and reads what stands (glance). One goroutine
// (decideAll) takes the requests in order, reads again where something was written since, decides, and hands the batch to Pebble, which appends it to the log and shows it to readers; it
// does not wait for the disk. A second goroutine (awaitAll) waits for the sync of each batch in the order of the log, and
// answers. While one sync runs, batches gather for the next, which serves all of them. So
//
//   - decisions are serial, since nothing can come between the read and the write of the one goroutine that decides;
//   - nothing is answered before it is synced: not the writer, not a conflict, not a second try that finds itself standing
//     (they go through awaitAll behind what they saw), not a reader (settle);
//   - a caller is bounded by its context even when the disk hangs, since it only ever waits on channels.
//
// A reader reads from Pebble first and then looks into its partition's stripe for the last commit that wrote there. Writers
// put themselves there before Pebble shows their write, and a log is synced from its front, so a reader that waits for that
// one commit has waited for all that it can have seen.
//
// # What a crash leaves
//
// Before the log was synced: nothing, or the whole batch, of which nobody was told. After: the whole batch. There is no
// state beside Pebble's. Close writes all into tables, so that a clean start replays nothing.
//
// # When the disk fails
//
// The first failed write, sync, create or rename stops the engine (fail): whoever waits gets an error that wraps
// store.ErrUnknown and ErrFailed, later calls get ErrFailed, Failed is closed, and no file is changed any more, so that the
// folder is as after a power cut at that moment. Pebble is not told of the failure, see guard. The program should end.
// A damaged block refuses the reads and writes that need it, loudly, and no others. A damaged list of tables is refused by Open
// (checkManifest), and so is a damaged log (checkLogs), but for its very end, where damage cannot be told from a write that a crash
// cut short.
//
// # Expiry
//
// See expiry.go: entries in the order of time, at most one an item in the ordinary case, looked at once a minute, in rounds
// of bounded size.
package pebble
