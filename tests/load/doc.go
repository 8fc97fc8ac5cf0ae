// Package load puts a load on Belfry from outside, and judges it by what clients and targets saw. Clients create, edit, pause, resume and
// delete jobs of every kind, ask for runs with and without keys, cancel, redrive and look; each keeps on until it is answered, over
// whatever happens to servers meanwhile. When all has come to rest, Judge holds what was answered and called against the promises.
//
// It knows nothing of how Belfry is run or what is done to it: a test says where the server is now (Gate) and what time it has
// (Config.Now), and gets each request with its answer, where it wants them (Config.Observe).
package load
