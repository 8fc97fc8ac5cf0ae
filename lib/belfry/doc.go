// Package belfry gives a Go program durable jobs and cron. There is no server to run: the scheduler lives in the program, its data
// in a folder.
//
//	b, err := belfry.Open(ctx, "pebble:///var/lib/app")
//	...
//	belfry.Handle(b, "email", func(ctx context.Context, job *belfry.Job[Email]) error {
//		return send(ctx, job.Payload)
//	})
//	err = b.Start(ctx)
//	...
//	_, err = belfry.Enqueue(ctx, b, "email", Email{To: "ann@example.org"}, belfry.Delay(time.Hour))
//	err = b.Schedule(ctx, "report", "30 9 * * 1-5", belfry.In("Europe/Berlin"))
//	...
//	err = b.Stop(ctx)
//
// [Handle] says what runs, [Enqueue] and [Belfry.Schedule] say when. Each request and each fire makes one run, which is written to
// disk before it is answered for: it survives a kill and a power cut, is tried again when it fails, and is kept with its attempts
// and its log.
//
// # What is promised
//
//   - When Enqueue returns nil, the run will be run.
//   - Every fire of a schedule that is in time makes exactly one run. Of what fired while the program was down the newest is run when it is
//     back, unless [CatchUpAll] or [CatchUpNone] say otherwise; the others are recorded.
//   - No run starts before its time.
//   - A run is at least once: after a crash in the middle of it, its handler is called again. Make handlers safe to repeat, by
//     Job.Run or Job.Fence, or choose [AtMostOnce].
//   - A run ends in one state. What failed for good stays as a dead letter, for [Belfry.Retry].
//
// # What is not
//
// An order among runs, or that only one run of a job goes at a time. That a run starts on the second while all places are taken: see
// [Concurrency]. That a handler which ignores its context stops.
//
// # A Belfry elsewhere
//
// Opened at an address instead of a folder, the same program works for a server that many programs share: jobs and requests go
// there, and the runs come back to whatever process has their handlers. See [RemoteQueue] and [Token].
//
// # Testing
//
// Package belfrytest has the same scheduler in memory, under a clock that the test moves: a month of a cron job takes milliseconds.
package belfry
