// Package chaos does to the real binary what happens to programs: it is killed under load, at random moments and at named points of its
// work, stopped past its leases, put behind a bad network, asked to stop, given a full or unwritable disk, a port or folder that
// is taken. What its clients and targets saw is then held against what Belfry promises. docs/chaos.md tells more.
//
// `make test` kills it some 30 times, `make test-deep` some 220 times, at every named point once; `make chaos` 1,000 times (BELFRY_KILLS).
// BELFRY_SEED repeats a run's choices; the moments are the machine's.
package chaos
