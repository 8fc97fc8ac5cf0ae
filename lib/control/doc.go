// Package control is what users and operators ask for: edits of jobs, requests for runs, cancel, retry, redrive, and lists.
//
// Truth: the store. A nil error says that what was asked for is durable, and what was read was. A *Refusal or *invalid.Error
// says that nothing was changed. Any other error leaves it open, and the same call may be made again.
//
// # Edits hold (P8)
//
// Ticks claim ahead, up to the horizon that they publish. So an edit is done in two halves:
//
//   - replace: job, replaced definition and first timer in one Write. From here on, a tick that reads the job sees the edit.
//   - settle: the horizon is read, then the job again. A tick that has not seen the edit published its horizon before that.
//     Up to it, fires of all past generations are fenced where nothing has started, the new generation's own are claimed
//     (the ticks have passed them), and runs on demand are unbound and bound again. The horizon is read once more when the timer
//     beyond it stands: a tick that moved it meanwhile has passed over that timer's place.
//
// Only then is there an answer. If a newer edit stands by the second read, that one is settled, so this answer holds whether
// or not the other process lives.
//
// A crash between the halves leaves a new definition that nobody was told of, and perhaps claims of the old one up to the
// horizon. The same edit again changes nothing and settles it; so does a DELETE before it says that there is no such job.
//
// New jobs of one batch share a Write (PutMany). A generation with none before it has nothing to fence or to bind again: its second
// half is a look at the horizon, and only what fires below that is settled as any edit.
//
// # Requests (P1, P9)
//
// Key, index (of what is due later), timer, run, answer: in this order, and of the requests of one call each step is one write of many,
// in which every request has its own fate. A crash after the key leaves a name, which the same
// request uses again; after the index, an item that names no run; after the timer, a run that a tick or sweep makes; after the
// run, one that they send. The run is put before the job is read: an edit that is not seen then sees the run.
//
// # Reopening
//
// The run as queued, its check timer, and the end of its dead letter are one Write. The send after it may fail: the check
// sends. A run on demand that was cancelled ahead of its time is scheduled again instead, and binds when that comes.
//
// # Listing runs of all jobs
//
// What the first sweep has passed is in the index by time (run.Index); what it has not is found by the timers in the buckets. The
// sweeps' cursors are read before both, so what is swept in between is found twice, and shown once. A run has its timer, or its
// item of the index, before it stands, so it is listed from then on. An item only says where to look: each run is read.
//
// # What is bounded
//
// An edit, or a change of a run, that is overtaken sixteen times gives CodeBusy. A job carries at most 500 past generations.
// A list looks at 5,000 items a call, of jobs at 1,000, and at 180 minutes of buckets. Acting on many runs takes 15 seconds a call. Deleting a job goes through all its runs on demand that are to come, as long as the
// context lets it.
//
// # What it does not promise
//
// That a cancelled run stops at once: its worker hears of it at the next renewal of its lease. That a list is a snapshot.
// That what is nominally due before an edit is held by it. It knows no users: the tenant is given to it, and trusted.
package control
