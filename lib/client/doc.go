// Package client calls Belfry's HTTP API from Go.
//
// Every method obeys its context. What Belfry refuses is an *Error with a stable Code; a server that cannot be reached is
// an *Unreachable. Calls that may be repeated are: reads, PUT, DELETE, pause and resume, and a trigger, which always
// carries an idempotency key, are sent again after a broken connection or a 503, a bounded number of times with growing
// waits; everything else only after an answer that says that nothing was done.
package client
