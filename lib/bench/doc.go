// Package bench measures Belfry on the machine that it runs on: burn-down, insert, lateness, scale and soak, as `belfry bench` shows them.
//
// # What is measured
//
// The scheduler of `belfry dev`, wired by package embed over a data folder: same store, same ticks, same workers, every acknowledged
// change synced. Nothing of it is left out or set otherwise for a benchmark, with one exception that the report names: the queue,
// which is memory, has room for all runs of a burn-down, since they are inserted while nothing works.
//
// Store calls are counted by a decorator, syncs by the engine where it makes them. Each report says what was synced, and on what.
//
// # The folder
//
// It must be empty or absent, so that nothing of somebody's is measured or overwritten. One that was made is removed, whatever
// the end, but for SIGKILL; one that was there is left empty.
//
// # What it does not do
//
// It judges nothing: there is no figure at which a benchmark fails. It fails where a run is missing, or ended as anything else than
// succeeded.
package bench
