package belfrytest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
	"github.com/belfry-scheduler/belfry/lib/belfrytest"
)

// The code under test: it reminds a customer who has not paid.

type Invoice struct {
	Number int
	Email  string
}

type Billing struct {
	jobs *belfry.Belfry
	paid map[int]bool
	post func(to, text string) error
}

func NewBilling(b *belfry.Belfry, post func(to, text string) error) *Billing {
	billing := &Billing{jobs: b, paid: map[int]bool{}, post: post}
	belfry.Handle(b, "remind", func(_ context.Context, job *belfry.Job[Invoice]) error {
		if billing.paid[job.Payload.Number] {
			return nil
		}
		return post(job.Payload.Email, fmt.Sprintf("please pay invoice %d", job.Payload.Number))
	})
	return billing
}

func (b *Billing) Send(ctx context.Context, invoice Invoice) error {
	_, err := belfry.Enqueue(ctx, b.jobs, "remind", invoice, belfry.Delay(14*24*time.Hour))
	return err
}

// A test moves the clock, and sees what became of the jobs.
func Example() {
	t := ofTest() // in a test: its *testing.T

	h := belfrytest.New(t)
	failures := 1
	billing := NewBilling(h.Belfry, func(to, text string) error {
		if failures--; failures >= 0 {
			return errors.New("the mail server is busy")
		}
		fmt.Println(h.Now().Format(time.DateOnly), to, text)
		return nil
	})
	for n := range 2 {
		if err := billing.Send(t.Context(), Invoice{Number: n, Email: "ann@example.org"}); err != nil {
			t.Fatal(err)
		}
	}
	billing.paid[1] = true
	fmt.Println("asked for", len(belfrytest.Enqueued[Invoice](h, "remind")))

	h.Advance(13 * 24 * time.Hour) // nothing yet
	h.RequireSucceeded("remind", 0)
	h.Advance(24*time.Hour + time.Minute) // the first attempt fails, the second does not
	h.RequireSucceeded("remind", 2)
	// Output:
	// asked for 2
	// 2026-01-15 ann@example.org please pay invoice 0
}
