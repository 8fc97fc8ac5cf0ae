// Package chaos does to the real binary what happens to programs: it is killed at random moments under load, frozen past its
// leases, asked to stop, given a full or unwritable disk, a port or folder that is taken. What its clients and targets saw is
// then held against what Belfry promises.
//
// `make test` kills it 50 times, `make chaos` 1,000 times (BELFRY_KILLS). BELFRY_SEED repeats a run's choices; the moments
// are the machine's.
package chaos
