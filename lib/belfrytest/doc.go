// Package belfrytest runs the jobs of a program in tests, in memory and under a clock that the test moves.
//
//	h := belfrytest.New(t)
//	app := newApp(h.Belfry) // handles, schedules and enqueues, as in production
//	app.signUp("ann@example.org")
//	h.Advance(24 * time.Hour)
//	h.RequireSucceeded("welcome", 1)
//
// It is the scheduler itself that runs, by the code that a program has in production; only the clock and the chance in the
// waits between attempts are the test's. Nothing sleeps: [Harness.Advance] goes from one instant at which something is due to the
// next, runs what is due, one handler after the other, and returns when there is nothing more. A month of a daily job takes some
// milliseconds, and every run of a test gives the same order.
//
// A failure is injected where it happens: by the handler, or by what it calls. To see what the retries do, let it fail, and Advance.
//
// # What differs
//
// Handlers see the real clock and the real time-outs; what they must know of the test's time they ask of [Harness.Now]. Nothing
// expires: runs stay for the assertions. There is no crash and no lost write: those are Belfry's own tests.
package belfrytest
