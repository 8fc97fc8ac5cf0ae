// Package backup writes a whole store with its blobs into one stream, and makes a store of such a stream again: the same one,
// in the same or another engine (Load), or a copy of the past that goes on from now (Restore).
//
// # The stream
//
//	belfry-backup 1\n
//	zstd of: header, items, blobs, end
//
// The first line is plain, so that a newer form is told from damage. Each part is a frame: a byte for its kind, its length, a
// record (package record). The end holds the numbers of all parts and a SHA-256 over them. A stream without it was cut short,
// and is refused as such; so is one that goes on behind it. Memory is bounded by the largest item or blob.
//
// # What it holds
//
// Items are as of one instant (store.Portable); the blobs are read after it. A run names a blob only when that is stored, and
// blobs never change: so each blob that an item names was there at that instant. The reverse order would miss those of the
// runs between. A blob that expires while the backup is written may be missing; the run that names it has expired before,
// since blobs are kept longer, and what reads it says that it has expired. Blobs that only later runs name are along too:
// they expire by themselves.
//
// # What a restored copy does
//
// After the instant of the backup the original went on: it has run what the backup holds as due, queued or running. Nothing
// in the backup tells. So Restore makes a store that owes nothing of the past, unless asked (Options):
//
//   - watermark, horizon and sweep cursors of each shard stand at the instant of the restore; timers at or before it are left
//     out. No tick will ever look there again.
//   - a run that had not ended, with a nominal time in the past, is unknown, with the reason. Only an explicit retry opens it.
//   - of each active job the fires between are one skipped run with their count; the timer of its next fire is put.
//   - versions of runs are raised by a step that no original can have counted to, so that the fences of the copy are above all
//     that targets have seen. Generations need none: they are at least the clock.
//
// All of that is done to a store that is not in use yet, with the decisions of packages run, job and timer. The result is an
// ordinary store: ticks know nothing of restores, and a crash in between leaves an unfinished folder that nobody opens.
//
// # What it does not promise
//
// That the original is gone. Two that live both fire; nothing here can see the other.
package backup
