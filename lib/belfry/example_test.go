package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

type Email struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
}

// A whole program: durable jobs, and no server.
func Example() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:") // "pebble:///var/lib/app" keeps everything over a crash
	if err != nil {
		log.Fatal(err)
	}
	belfry.Handle(b, "email", func(_ context.Context, job *belfry.Job[Email]) error {
		fmt.Println("to", job.Payload.To+":", job.Payload.Subject)
		return nil
	})
	if err := b.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := b.Schedule(ctx, "email", "30 9 * * 1-5", belfry.In("Europe/Berlin"), belfry.Payload(Email{"all@example.org", "Good morning"})); err != nil {
		log.Fatal(err)
	}
	run, err := belfry.Enqueue(ctx, b, "email", Email{"ann@example.org", "Welcome"})
	if err != nil {
		log.Fatal(err)
	}
	if run, err = b.Wait(ctx, run.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.State)
	if err := b.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// to ann@example.org: Welcome
	// succeeded
}

var errNoSuchAddress = errors.New("no such address")

func send(mail Email, attempt int) error {
	switch {
	case mail.To == "":
		return errNoSuchAddress
	case attempt < 3:
		return errors.New("the server is busy")
	}
	return nil
}

// A handler's error says whether trying again helps, and what it leaves in Result is kept.
func ExampleHandle() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	belfry.Handle(b, "email", func(_ context.Context, job *belfry.Job[Email]) error {
		job.Log.Info("sending", "to", job.Payload.To) // kept with the run: see Belfry.Log
		err := send(job.Payload, job.Attempt)
		if errors.Is(err, errNoSuchAddress) {
			return belfry.Permanent(err) // no retry will help
		}
		if err != nil {
			return err // tried again after a growing wait
		}
		job.Result = map[string]int{"attempts": job.Attempt}
		return nil
	}, belfry.MaxAttempts(10), belfry.Timeout(10*time.Second), belfry.Backoff(time.Millisecond, time.Minute))
	if err := b.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, to := range []string{"ann@example.org", ""} {
		run, err := belfry.Enqueue(ctx, b, "email", Email{To: to})
		if err != nil {
			log.Fatal(err)
		}
		if run, err = b.Wait(ctx, run.ID); err != nil {
			log.Fatal(err)
		}
		fmt.Println(run.State, string(run.Result), run.Error)
	}
	// Output:
	// succeeded {"attempts":3} handler: the server is busy
	// failed  handler: no such address
}

// The same request under the same key is the same run, however often it is sent.
func ExampleEnqueue() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	belfry.Handle(b, "remind", func(context.Context, *belfry.Job[Email]) error { return nil })

	mail := Email{To: "ann@example.org", Subject: "Your trial ends tomorrow"}
	first, err := belfry.Enqueue(ctx, b, "remind", mail, belfry.Delay(13*24*time.Hour), belfry.Key("trial-4711"))
	if err != nil {
		log.Fatal(err)
	}
	again, err := belfry.Enqueue(ctx, b, "remind", mail, belfry.Delay(13*24*time.Hour), belfry.Key("trial-4711"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.State, first.ID == again.ID)

	mail.Subject = "Another mail"
	_, err = belfry.Enqueue(ctx, b, "remind", mail, belfry.Key("trial-4711"))
	fmt.Println(belfry.HasCode(err, belfry.CodeKeyReused))
	// Output:
	// scheduled true
	// true
}

// Schedules are kept. At the next start the same calls change nothing.
func ExampleBelfry_Schedule() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	type Report struct{ Kind string }
	belfry.Handle(b, "report", func(context.Context, *belfry.Job[Report]) error { return nil })

	err = errors.Join(
		b.Schedule(ctx, "report", "30 9 * * 1-5", belfry.In("Europe/Berlin"), belfry.Payload(Report{"daily"})),
		b.Schedule(ctx, "report", "0 8 L * *", belfry.As("report-monthly"), belfry.Payload(Report{"monthly"}), belfry.CatchUpAll()),
		b.Schedule(ctx, "report", "@every 15m", belfry.As("report-live"), belfry.Payload(Report{"live"}), belfry.CatchUpNone()),
		b.Unschedule(ctx, "report-weekly"), // an earlier version of the program had it
	)
	fmt.Println(err)

	err = b.Schedule(ctx, "report", "30 25 * * *")
	fmt.Println(err)
	// Output:
	// <nil>
	// job report: schedule.cron: got "25", want hour: 0 to 23
}

// Dead letters are the runs that have failed for good.
func ExampleBelfry_Runs() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	healthy := false
	belfry.Handle(b, "sync", func(context.Context, *belfry.Job[string]) error {
		if !healthy {
			return belfry.Permanent(errors.New("the other side refuses"))
		}
		return nil
	})
	if err := b.Start(ctx); err != nil {
		log.Fatal(err)
	}
	run, err := belfry.Enqueue(ctx, b, "sync", "customers")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := b.Wait(ctx, run.ID); err != nil {
		log.Fatal(err)
	}
	healthy = true
	for dead, err := range b.Runs(ctx, "sync", belfry.Dead, belfry.Failed) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(dead.State, dead.Error)
		if err := b.Retry(ctx, dead.ID); err != nil {
			log.Fatal(err)
		}
		if dead, err = b.Wait(ctx, dead.ID); err != nil {
			log.Fatal(err)
		}
		fmt.Println(dead.State)
	}
	// Output:
	// failed handler: the other side refuses
	// succeeded
}

// Many runs at once cost a fraction of what as many calls cost. Each has a verdict.
func ExampleEnqueueMany() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	belfry.Handle(b, "email", func(context.Context, *belfry.Job[Email]) error { return nil })
	var orders []belfry.Order[Email]
	for _, to := range []string{"ann@example.org", "bob@example.org"} {
		orders = append(orders, belfry.Order[Email]{Payload: Email{to, "News"}, Options: []belfry.EnqueueOption{belfry.Key("news-7-" + to)}})
	}
	verdicts, err := belfry.EnqueueMany(ctx, b, "email", orders...)
	if err != nil {
		log.Fatal(err) // of the first that was not taken; the verdicts tell of each
	}
	for _, v := range verdicts {
		fmt.Println(v.Run.Job, v.Run.State)
	}
	// Output:
	// email queued
	// email queued
}

// A run that is due while another one of the job is in progress is skipped, and says so.
func ExampleSkipOverlap() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	began, end := make(chan struct{}), make(chan struct{})
	belfry.Handle(b, "report", func(context.Context, *belfry.Job[struct{}]) error {
		began <- struct{}{}
		<-end
		return nil
	}, belfry.SkipOverlap(1))
	if err := b.Start(ctx); err != nil {
		log.Fatal(err)
	}
	first, err := belfry.Enqueue(ctx, b, "report", struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	<-began
	second, err := belfry.Enqueue(ctx, b, "report", struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	if second, err = b.Wait(ctx, second.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(second.State, second.Why.Code, second.Why.InTheWay[0] == first.ID)
	close(end)
	// Output:
	// skipped overlap true
}

// Under StrictOverlap the runs of a job take turns, and stand still after one that failed. Whoever has looked at it lets them go on.
func ExampleBelfry_OpenLine() {
	ctx := context.Background()
	b, err := belfry.Open(ctx, "memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer b.Stop(ctx)
	belfry.Handle(b, "ledger", func(_ context.Context, job *belfry.Job[string]) error {
		if job.Payload == "monday" {
			return belfry.Permanent(errors.New("the books do not balance"))
		}
		return nil
	}, belfry.StrictOverlap(10))
	if err := b.Start(ctx); err != nil {
		log.Fatal(err)
	}
	monday, err := belfry.Enqueue(ctx, b, "ledger", "monday")
	if err != nil {
		log.Fatal(err)
	}
	if monday, err = b.Wait(ctx, monday.ID); err != nil {
		log.Fatal(err)
	}
	tuesday, err := belfry.Enqueue(ctx, b, "ledger", "tuesday")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(monday.State, "and then it stands still")

	if err := b.OpenLine(ctx, "ledger", belfry.Opening{Run: monday.ID, Ended: monday.Ended, Reason: "balanced by hand"}); err != nil {
		log.Fatal(err)
	}
	if tuesday, err = b.Wait(ctx, tuesday.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tuesday.State)
	// Output:
	// failed and then it stands still
	// succeeded
}
