// Package upgrade holds later versions to the stores of earlier ones. Each release commits a store of its own under
// testdata/VERSION, made by "make release-store":
//
//	store.tar.gz    the data folder, as a stopped server leaves it
//	belfry.backup   a backup of the same
//	runs.json       what a reader finds in it: each run and its state
//
// The tests open, read, upgrade and fire every one of them, and restore every backup. A store is never made again: what a
// release has written is what its users have. A record that this version adds is in the next release's store.
package upgrade
