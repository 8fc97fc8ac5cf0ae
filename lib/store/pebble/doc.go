// Package pebble keeps a store in a folder of one machine, in Pebble, a log-structured merge tree. It is the engine of
// `belfry dev` and `belfry serve`; docs/store.md has its figures.
//
// # A write
//
// The caller's goroutine copies what it wants into a request and puts that to the group that gathers. One goroutine (decideAll)
// takes the group, decides its requests in order, and hands what they write to Pebble as one batch, which Pebble appends to the log and
// shows to readers; it does not wait for the disk. A second goroutine (awaitAll) waits for the sync of each group in the order of the
// log, and answers all of it at once. While one group is on its way to the disk one more is decided, and the next gathers: so
// a slow disk makes large groups. So
//
//   - decisions are serial, since nothing can come between the read and the write of the one goroutine that decides;
//   - a decision sees what the same group has written before, though Pebble does not have it yet (heads.go);
//   - nothing is answered before it is synced: not the writer, not a conflict, not a second try that finds itself standing
//     (they are answered with their group, behind what they saw), not a reader (settle);
//   - a caller is bounded by its context even when the disk hangs, since it only ever waits on channels.
//
// What stands under a key, its version, expiry and attempt, is mostly remembered (heads.go), or known to be nothing (floors.go), and
// else read, by the group, in the order of keys.
//
// A reader reads from Pebble first and then looks into its partition's stripe for the last commit that wrote there. Writers
// put themselves there before Pebble shows their write, and a log is synced from its front, so a reader that waits for that
// one commit has waited for all that it can have seen. Whoever reads single keys looks at these first (slots), by the same rule, and waits only where one of them is on its way.
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
// A damaged block refuses the reads and writes that need it, loudly, and no others. A damaged list of tables is refused by Open,
// and one that nothing names any more (checkList), and so is a damaged log (checkLogs), but for its very end, where damage cannot be told from a write that a crash
// cut short.
//
// # Expiry
//
// See expiry.go: entries in the order of time, at most one an item in the ordinary case, looked at once a minute, in rounds
// of bounded size.
package pebble
