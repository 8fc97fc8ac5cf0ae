// Package power cuts the power of a whole scheduler: a node with its API over the embedded store and the blob folder, both on one file
// system in memory that forgets what was not synced. The rest is the product's own code. Time is virtual, so hundreds of cuts take
// seconds.
//
// A cut comes at a change of the disk, drawn by chance, before it or after it, in any goroutine; or at an instant. From then on the
// machine is dead: nobody hears of it any more, no target is called by it. What is left is what was synced, and of the rest each block
// and each directory entry by chance. The next start is from that.
//
// The clients and the judgement are those of tests/load and tests/linear, which judge kill -9 too: a cut takes what a kill leaves in
// the page cache, and may take no promise.
package power
