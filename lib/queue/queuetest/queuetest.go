// Package queuetest is the conformance suite of the queue port. Every engine passes it unmodified; it asks for nothing that
// an at-least-once queue without order cannot keep, so it tolerates messages that come twice, late or in another order, and
// counts that lag. Delays and visibilities are whole seconds, the finest that SQS knows.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

const (
	patience = 5 * time.Minute // the longest that anything here is waited for: for a hang, since an emulator on a busy machine is slow
	hidden   = 2 * time.Hour   // a visibility that no test outlives
)

// Run runs the suite. Open gives a fresh, empty queue with room for at least 2,000 messages and 2 MiB of bodies; the suite
// closes it.
func Run(t *testing.T, open func(t *testing.T) queue.Queue) {
	for _, c := range []struct {
		name string
		test func(b *bench)
	}{
		{"what_is_sent_is_received", whatIsSent},
		{"bodies_are_any_bytes_up_to_the_limit", bodies},
		{"bodies_are_the_callers_own", ownBodies},
		{"a_batch_is_received_up_to_the_limit", batches},
		{"an_empty_batch_does_nothing", emptyBatch},
		{"a_taken_message_is_hidden_and_comes_back", comesBack},
		{"a_visibility_of_zero_hides_nothing", zeroVisibility},
		{"a_deleted_message_stays_away", staysAway},
		{"extending_hides_for_longer", extends},
		{"extending_by_zero_hands_back_at_once", handsBack},
		{"Fault22_an_old_receipt_deletes_nothing", oldReceiptDeletes},
		{"Fault22_an_old_receipt_extends_nothing", oldReceiptExtends},
		{"deleting_twice_is_harmless", deleteTwice},
		{"a_delayed_message_is_not_early_and_wakes_the_waiting", delays},
		{"Fault24_a_delay_beyond_what_the_queue_holds_is_refused", delayTooLong},
		{"limits_refuse_the_whole_call", limits},
		{"a_send_wakes_the_waiting", sendWakes},
		{"an_ended_visibility_wakes_the_waiting", visibilityWakes},
		{"nothing_to_receive_is_no_error", nothing},
		{"a_wait_obeys_its_context", obeysContext},
		{"low_is_not_starved_by_a_flood_of_high", notStarved},
		{"depth_counts_by_state_and_priority", depth},
		{"nothing_is_lost_under_concurrency", concurrency},
		{"close_wakes_the_waiting_and_ends_the_queue", closes},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			t.Cleanup(cancel)
			q := open(t)
			t.Cleanup(func() { _ = q.Close() })
			c.test(&bench{T: t, ctx: ctx, q: q})
		})
	}
}

// bench is one subtest: a fresh queue and the calls on it that must not fail.
type bench struct {
	*testing.T
	ctx context.Context
	q   queue.Queue
}

func (b *bench) send(p queue.Priority, batch ...queue.Outgoing) {
	b.Helper()
	errs, err := b.q.Send(b.ctx, p, batch...)
	b.allFine("send", len(batch), errs, err)
}

func (b *bench) sendText(p queue.Priority, texts ...string) {
	b.Helper()
	for _, text := range texts {
		b.send(p, queue.Outgoing{Body: []byte(text), Group: "default"})
	}
}

func (b *bench) delete(batch ...queue.Message) {
	b.Helper()
	errs, err := b.q.Delete(b.ctx, batch...)
	b.allFine("delete", len(batch), errs, err)
}

func (b *bench) extend(visibility time.Duration, batch ...queue.Message) {
	b.Helper()
	errs, err := b.q.Extend(b.ctx, visibility, batch...)
	b.allFine("extend", len(batch), errs, err)
}

func (b *bench) allFine(what string, n int, errs []error, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	if len(errs) != n {
		b.Fatalf("%s of %d messages gave %d errors, want one each", what, n, len(errs))
	}
	for i, err := range errs {
		if err != nil {
			b.Fatalf("%s: message %d: %v", what, i, err)
		}
	}
}

func (b *bench) receive(max int, wait, visibility time.Duration) []queue.Message {
	b.Helper()
	got, err := b.q.Receive(b.ctx, max, wait, visibility)
	if err != nil {
		b.Fatalf("receive: %v", err)
	}
	if len(got) > max {
		b.Fatalf("receive of at most %d gave %d messages", max, len(got))
	}
	return got
}

// one receives the one message that there is, however long the engine takes to find it.
func (b *bench) one(visibility time.Duration) queue.Message {
	b.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if got := b.receive(1, 5*time.Second, visibility); len(got) == 1 {
			return got[0]
		}
	}
	b.Fatalf("no message within %v", patience)
	return queue.Message{}
}

// drain receives and deletes until every one of n different bodies has come, and gives them.
func (b *bench) drain(n int) map[string]queue.Message {
	b.Helper()
	got := map[string]queue.Message{}
	for end := time.Now().Add(patience); len(got) < n; {
		if time.Now().After(end) {
			b.Fatalf("%d of %d messages within %v", len(got), n, patience)
		}
		batch := b.receive(queue.MaxBatch, time.Second, hidden)
		for _, m := range batch {
			got[string(m.Body)] = m
		}
		b.delete(batch...)
	}
	return got
}

// nothingFor holds that nothing can be received for a time.
func (b *bench) nothingFor(d time.Duration) {
	b.Helper()
	if got := b.receive(queue.MaxBatch, d, hidden); len(got) != 0 {
		b.Fatalf("received %q, want nothing for %v", got[0].Body, d)
	}
}

func whatIsSent(b *bench) {
	start := time.Now()
	for _, p := range queue.Priorities {
		b.send(p,
			queue.Outgoing{Body: []byte(p + " 1"), Group: "one"},
			queue.Outgoing{Body: []byte(p + " 2"), Group: "two"})
	}
	got := b.drain(6)
	receipts := map[string]bool{}
	for _, p := range queue.Priorities {
		for _, n := range []string{" 1", " 2"} {
			m, ok := got[string(p)+n]
			if !ok {
				b.Fatalf("%s%s was not received", p, n)
			}
			if m.Priority != p {
				b.Errorf("%s%s came with priority %q", p, n, m.Priority)
			}
			if m.Receives < 1 {
				b.Errorf("%s%s came with receives %d, want at least 1", p, n, m.Receives)
			}
			if m.Sent.Before(start.Add(-time.Minute)) || m.Sent.After(time.Now().Add(time.Minute)) {
				b.Errorf("%s%s came as sent at %v, want about %v", p, n, m.Sent, start)
			}
			if m.Receipt == "" || receipts[m.Receipt] {
				b.Errorf("%s%s came with receipt %q, want one of its own", p, n, m.Receipt)
			}
			receipts[m.Receipt] = true
		}
	}
}

func bodies(b *bench) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := bytes.Repeat([]byte{0xff, 0, 'x', '\n'}, queue.MaxBodyBytes/4)
	// What tools are told beside the body takes nothing away from it, nor from its limit.
	seen := trace.Context{Trace: [16]byte{1}, Span: [8]byte{2}, Sampled: true}
	b.send(queue.Normal, queue.Outgoing{Body: every, Trace: seen, Fence: 7})
	b.send(queue.Normal, queue.Outgoing{Body: large, Trace: seen, Fence: 1<<64 - 1, Group: "default"})
	got := b.drain(2)
	for _, want := range [][]byte{every, large} {
		if _, ok := got[string(want)]; !ok {
			b.Errorf("a body of %d bytes did not come back as it was", len(want))
		}
	}
}

func ownBodies(b *bench) {
	body := []byte("as sent")
	b.send(queue.Normal, queue.Outgoing{Body: body})
	copy(body, "changed")
	first := b.one(hidden)
	if string(first.Body) != "as sent" {
		b.Fatalf("a change after the send reached the receiver: %q", first.Body)
	}
	copy(first.Body, "changed")
	b.extend(0, first)
	if again := b.one(hidden); string(again.Body) != "as sent" {
		b.Fatalf("a change by a receiver reached the next one: %q", again.Body)
	}
}

func batches(b *bench) {
	var batch []queue.Outgoing
	for i := range queue.MaxBatch {
		batch = append(batch, queue.Outgoing{Body: fmt.Appendf(nil, "message %d", i)})
	}
	b.send(queue.High, batch...)
	seen := map[string]bool{}
	for end := time.Now().Add(patience); len(seen) < queue.MaxBatch; {
		if time.Now().After(end) {
			b.Fatalf("%d of %d messages within %v", len(seen), queue.MaxBatch, patience)
		}
		batch := b.receive(3, time.Second, hidden)
		for _, m := range batch {
			seen[string(m.Body)] = true
		}
		b.delete(batch...)
	}
}

func emptyBatch(b *bench) {
	b.send(queue.Normal)
	b.delete()
	b.extend(time.Minute)
	b.nothingFor(0)
}

func comesBack(b *bench) {
	b.sendText(queue.Normal, "work")
	first := b.one(2 * time.Second)
	taken := time.Now()
	b.nothingFor(0)
	again := b.one(hidden)
	if since := time.Since(taken); since < 1500*time.Millisecond {
		b.Errorf("came back after %v, want 2s", since)
	}
	if string(again.Body) != "work" || again.Priority != queue.Normal {
		b.Errorf("came back as %q with priority %q", again.Body, again.Priority)
	}
	if again.Receives <= first.Receives {
		b.Errorf("came back with receives %d after %d, want more", again.Receives, first.Receives)
	}
	if again.Receipt == first.Receipt {
		b.Error("came back with the same receipt")
	}
}

func zeroVisibility(b *bench) {
	b.sendText(queue.Normal, "work")
	first := b.one(0)
	again := b.one(hidden)
	if again.Receives <= first.Receives {
		b.Errorf("came back with receives %d after %d, want more", again.Receives, first.Receives)
	}
}

func staysAway(b *bench) {
	b.sendText(queue.Normal, "work")
	b.delete(b.one(time.Second))
	b.nothingFor(2 * time.Second)
}

func extends(b *bench) {
	b.sendText(queue.Normal, "work")
	m := b.one(2 * time.Second)
	b.extend(hidden, m)
	b.nothingFor(3 * time.Second)
	b.delete(m)
}

func handsBack(b *bench) {
	b.sendText(queue.Normal, "work")
	first := b.one(hidden)
	b.extend(0, first)
	again := b.one(hidden)
	if string(again.Body) != "work" || again.Receives <= first.Receives {
		b.Errorf("came back as %q with receives %d after %d", again.Body, again.Receives, first.Receives)
	}
}

func oldReceiptDeletes(b *bench) {
	b.sendText(queue.Normal, "work")
	old := b.one(0)
	newest := b.one(hidden)
	b.delete(old)
	b.extend(0, newest)
	b.delete(b.one(hidden))
}

func oldReceiptExtends(b *bench) {
	b.sendText(queue.Normal, "work")
	old := b.one(0)
	newest := b.one(hidden)
	// Whether the engine tells is open, that the newest delivery keeps its message is not.
	if _, err := b.q.Extend(b.ctx, 0, old); err != nil {
		b.Fatalf("extend: %v", err)
	}
	b.nothingFor(time.Second)
	b.delete(newest)
}

func deleteTwice(b *bench) {
	b.sendText(queue.Normal, "gone")
	m := b.one(hidden)
	b.delete(m)
	b.sendText(queue.Normal, "stays")
	b.delete(m)
	if got := b.one(hidden); string(got.Body) != "stays" {
		b.Fatalf("received %q, want the message that was not deleted", got.Body)
	}
}

func delays(b *bench) {
	sent := time.Now()
	b.send(queue.High, queue.Outgoing{Body: []byte("later"), Delay: 2 * time.Second})
	b.nothingFor(0)
	got := b.one(hidden)
	if after := time.Since(sent); after < 2*time.Second {
		b.Errorf("received %v after the send, want 2s at least", after)
	}
	if string(got.Body) != "later" || got.Priority != queue.High {
		b.Errorf("received %q with priority %q", got.Body, got.Priority)
	}
}

func delayTooLong(b *bench) {
	b.send(queue.Normal, queue.Outgoing{Body: []byte("the longest"), Delay: queue.MaxDelay})
	_, err := b.q.Send(b.ctx, queue.Normal,
		queue.Outgoing{Body: []byte("at once")},
		queue.Outgoing{Body: []byte("too late"), Delay: queue.MaxDelay + time.Second})
	if !errors.Is(err, queue.ErrLimit) {
		b.Fatalf("a delay over the limit gave %v, want ErrLimit", err)
	}
	b.nothingFor(time.Second)
}

func limits(b *bench) {
	fine := queue.Outgoing{Body: []byte("x")}
	tooMany := make([]queue.Outgoing, queue.MaxBatch+1)
	for i := range tooMany {
		tooMany[i] = fine
	}
	half := queue.Outgoing{Body: make([]byte, queue.MaxBodyBytes/2+1)}
	messages := make([]queue.Message, queue.MaxBatch+1)
	send := func(p queue.Priority, batch ...queue.Outgoing) func() error {
		return func() error { _, err := b.q.Send(b.ctx, p, batch...); return err }
	}
	receive := func(max int, wait, visibility time.Duration) func() error {
		return func() error { _, err := b.q.Receive(b.ctx, max, wait, visibility); return err }
	}
	for name, call := range map[string]func() error{
		"a batch too large":         send(queue.Normal, tooMany...),
		"bodies too large together": send(queue.Normal, half, half),
		"a body of no bytes":        send(queue.Normal, fine, queue.Outgoing{}),
		"a delay below zero":        send(queue.Normal, fine, queue.Outgoing{Body: []byte("x"), Delay: -time.Second}),
		"an unknown priority":       send("urgent", fine),
		"receive none":              receive(0, 0, 0),
		"receive too many":          receive(queue.MaxBatch+1, 0, 0),
		"wait below zero":           receive(1, -time.Second, 0),
		"wait too long":             receive(1, queue.MaxWait+time.Second, 0),
		"visibility below zero":     receive(1, 0, -time.Second),
		"visibility too long":       receive(1, 0, queue.MaxVisibility+time.Second),
		"delete too many":           func() error { _, err := b.q.Delete(b.ctx, messages...); return err },
		"extend too many":           func() error { _, err := b.q.Extend(b.ctx, time.Minute, messages...); return err },
		"extend too long":           func() error { _, err := b.q.Extend(b.ctx, queue.MaxVisibility+time.Second); return err },
		"extend by less than zero":  func() error { _, err := b.q.Extend(b.ctx, -time.Second); return err },
	} {
		if err := call(); !errors.Is(err, queue.ErrLimit) {
			b.Errorf("%s gave %v, want ErrLimit", name, err)
		}
	}
	b.nothingFor(time.Second)
}

// waiting starts a Receive of the longest wait and gives what it comes to.
func (b *bench) waiting() <-chan []queue.Message {
	out := make(chan []queue.Message, 1)
	go func() {
		defer close(out)
		got, err := b.q.Receive(b.ctx, 1, queue.MaxWait, hidden)
		if err != nil {
			b.Errorf("receive: %v", err)
		}
		out <- got
	}()
	return out
}

// wakesBy holds that a waiting Receive gives the text well before its wait is over: half of it tells who wakes, in milliseconds, from who
// looks again at the end.
func (b *bench) wakesBy(got <-chan []queue.Message, start time.Time, text string) {
	b.Helper()
	batch := <-got
	if len(batch) != 1 || string(batch[0].Body) != text {
		b.Fatalf("the waiting received %v, want %q", batch, text)
	}
	if after := time.Since(start); after > queue.MaxWait/2 {
		b.Errorf("the waiting woke after %v", after)
	}
}

func sendWakes(b *bench) {
	for _, p := range queue.Priorities {
		start := time.Now()
		got := b.waiting()
		b.sendText(p, "wake "+string(p))
		b.wakesBy(got, start, "wake "+string(p))
	}
}

func visibilityWakes(b *bench) {
	b.sendText(queue.Low, "wake")
	b.one(2 * time.Second)
	start := time.Now()
	b.wakesBy(b.waiting(), start, "wake")
}

func nothing(b *bench) {
	start := time.Now()
	b.nothingFor(0)
	b.nothingFor(time.Second)
	if took := time.Since(start); took < time.Second {
		b.Errorf("gave up after %v, want a wait of 1s", took)
	}
}

func obeysContext(b *bench) {
	ctx, cancel := context.WithTimeout(b.ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := b.q.Receive(ctx, 1, queue.MaxWait, hidden); !errors.Is(err, context.DeadlineExceeded) {
		b.Errorf("receive gave %v, want the context's error", err)
	}
	over, end := context.WithCancel(b.ctx)
	end()
	if _, err := b.q.Send(over, queue.Normal, queue.Outgoing{Body: []byte("x")}); !errors.Is(err, context.Canceled) {
		b.Errorf("send gave %v, want the context's error", err)
	}
	// What a receiver that gave up might have taken would be hidden now.
	b.sendText(queue.Normal, "still here")
	if got := b.one(hidden); string(got.Body) != "still here" {
		b.Errorf("received %q", got.Body)
	}
}

func notStarved(b *bench) {
	b.sendText(queue.Low, "low")
	b.sendText(queue.Normal, "normal")
	flood := make([]queue.Outgoing, queue.MaxBatch)
	for i := range flood {
		flood[i].Body = []byte("high")
	}
	for range 5 {
		b.send(queue.High, flood...)
	}
	missing := map[queue.Priority]bool{queue.Normal: true, queue.Low: true}
	for taken := 0; len(missing) > 0; {
		if taken > 1000 {
			b.Fatalf("%d messages taken, and none of %v", taken, missing)
		}
		batch := b.receive(queue.MaxBatch, time.Second, hidden)
		taken += len(batch)
		for _, m := range batch {
			delete(missing, m.Priority)
			if m.Priority == queue.High {
				b.sendText(queue.High, "high")
			}
		}
		b.delete(batch...)
	}
}

func depth(b *bench) {
	b.sendText(queue.High, "taken")
	b.one(hidden)
	b.sendText(queue.High, "a", "b")
	b.sendText(queue.Low, "c")
	b.send(queue.Low, queue.Outgoing{Body: []byte("d"), Delay: queue.MaxDelay})
	want := map[queue.Priority]queue.Depth{
		queue.High:   {Ready: 2, Taken: 1},
		queue.Normal: {},
		queue.Low:    {Ready: 1, Delayed: 1},
	}
	var got map[queue.Priority]queue.Depth
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if got, err = b.q.Depth(b.ctx); err != nil {
			b.Fatalf("depth: %v", err)
		}
		if len(got) == 3 && got[queue.High] == want[queue.High] &&
			got[queue.Normal] == want[queue.Normal] && got[queue.Low] == want[queue.Low] {
			return
		}
	}
	b.Fatalf("depth is %+v, want %+v", got, want)
}

func concurrency(b *bench) {
	const senders, each, receivers = 4, 25, 4
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range each {
				var batch []queue.Outgoing
				for j := range 3 {
					batch = append(batch, queue.Outgoing{
						Body:  fmt.Appendf(nil, "%d/%d/%d", s, i, j),
						Delay: time.Duration(j%2) * time.Second,
						Group: fmt.Sprint(j),
					})
				}
				errs, err := b.q.Send(b.ctx, queue.Priorities[i%3], batch...)
				if err := errors.Join(append(errs, err)...); err != nil {
					b.Errorf("send: %v", err)
				}
			}
		})
	}
	const want = senders * each * 3
	var mu sync.Mutex
	seen := map[string]bool{}
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == want
	}
	end := time.Now().Add(patience)
	for range receivers {
		all.Go(func() {
			for !done() && time.Now().Before(end) {
				batch, err := b.q.Receive(b.ctx, queue.MaxBatch, time.Second, hidden)
				if err != nil {
					b.Errorf("receive: %v", err)
					return
				}
				mu.Lock()
				for _, m := range batch {
					seen[string(m.Body)] = true
				}
				mu.Unlock()
				errs, err := b.q.Delete(b.ctx, batch...)
				if err := errors.Join(append(errs, err)...); err != nil {
					b.Errorf("delete: %v", err)
				}
			}
		})
	}
	all.Wait()
	if len(seen) != want {
		b.Errorf("received %d of %d messages", len(seen), want)
	}
}

func closes(b *bench) {
	failed := make(chan error, 1)
	go func() {
		_, err := b.q.Receive(b.ctx, 1, queue.MaxWait, hidden)
		failed <- err
	}()
	start := time.Now()
	if err := b.q.Close(); err != nil {
		b.Fatalf("close: %v", err)
	}
	if err := <-failed; !errors.Is(err, queue.ErrClosed) {
		b.Errorf("the waiting got %v, want ErrClosed", err)
	}
	if took := time.Since(start); took > queue.MaxWait/2 {
		b.Errorf("the waiting woke %v after the close", took)
	}
	m := queue.Message{Priority: queue.Normal, Receipt: "x"}
	for name, call := range map[string]func() error{
		"send":    func() error { _, err := b.q.Send(b.ctx, queue.Normal, queue.Outgoing{Body: []byte("x")}); return err },
		"receive": func() error { _, err := b.q.Receive(b.ctx, 1, 0, hidden); return err },
		"delete":  func() error { _, err := b.q.Delete(b.ctx, m); return err },
		"extend":  func() error { _, err := b.q.Extend(b.ctx, time.Minute, m); return err },
		"depth":   func() error { _, err := b.q.Depth(b.ctx); return err },
	} {
		if err := call(); !errors.Is(err, queue.ErrClosed) {
			b.Errorf("%s after the close gave %v, want ErrClosed", name, err)
		}
	}
}
