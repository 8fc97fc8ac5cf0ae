// Package linear holds what clients saw of Belfry against what it promises of single things: there is an order of all requests
// for a job, a run or an idempotency key, each at some moment between its begin and its end, in which every answer is right.
//
// A Recorder sits below clients, as the transport of their HTTP: it sees each try as the wire does, so it serves a server in another
// process, one in memory under virtual time, and one whose power is cut. Hold checks what it gathered, thing by thing, with
// porcupine, and fails the test where no such order exists, and also where none was found in time.
//
// # What a request counts as
//
//   - Answered with 2xx, or refused for what stands there (404, 409, 412): an operation with that answer.
//   - Refused for another reason (422, 429, throttled): nothing was done, says docs/api.md, and so nothing is noted. Had something
//     been done, a later answer has no explanation.
//   - Lost, timed out, outcome_unknown, any other 5xx: an operation that may happen, or not, at any time until its request is over. Who
//     carries requests may know when that is, and tells its Way; else it is the end of the history.
//   - Told to have reached nobody: nothing, and nothing is noted.
//   - A batch is one operation for each of its items; a listing of jobs is one look at each job in it.
//
// # What is left out
//
//   - Listings of runs, which are read off an index that the sweeps write (docs/listings.md).
//   - Whether a job exists when a run of it is asked for: that may be told from memory for a minute.
//   - What Belfry does by itself to a run: it may do so at any time, in the graph of docs/run.md. That it does what it should is for
//     other tests; here it must not be seen to take back what it has shown.
package linear
