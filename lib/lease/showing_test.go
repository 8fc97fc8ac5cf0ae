package lease

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// slow takes nothing until it is given up, but for what is empty.
type slow struct {
	driver.Bucket
	emptied *int
}

func (s slow) NewTypedWriter(ctx context.Context, _, _ string, _ *driver.WriterOptions) (driver.Writer, error) {
	return &slowWriter{ctx: ctx, bucket: s}, nil
}

func (slow) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.Unknown }
func (slow) Close() error                       { return nil }

type slowWriter struct {
	ctx    context.Context // of the upload
	bucket slow
	size   int
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.size += len(p)
	return len(p), nil
}

func (w *slowWriter) Close() error {
	if w.size == 0 {
		*w.bucket.emptied++
		return nil
	}
	<-w.ctx.Done()
	return errors.New("given up")
}

// An end waits for no log that is being shown: it gives that up, empties it, and nothing more is shown.
func TestAnEndWaitsForNoShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, emptied := time.Now(), 0
		elapsed := func() time.Duration { return time.Since(began) }
		d := &dispatch.Dispatcher{Config: dispatch.Config{Elapsed: elapsed, Lease: 30 * time.Second}}
		desk := &Desk{Config: Config{Dispatch: d, Blobs: blob.New(gocloud.NewBucket(slow{emptied: &emptied})), Log: slog.New(slog.DiscardHandler)}}
		s := desk.showing(run.Run{ID: run.RequestID("a", began.UnixMilli(), 1), Tenant: "acme", State: run.Running, Started: began.UnixMilli(), Attempt: 1, Fence: 2, Version: 3})
		s.touched()
		shown := make(chan error)
		go func() {
			read, err := s.show(t.Context(), runlog.Plain([]byte("begun")))
			if read {
				err = errors.New("it is to be shown on")
			}
			shown <- err
		}()
		synctest.Wait()
		s.conceal(t.Context(), true)
		if err := <-shown; err != nil || time.Since(began) != 0 || emptied != 1 {
			t.Errorf("the end has waited for %s, and emptied %d, %v", time.Since(began), emptied, err)
		}
		if read, err := s.show(t.Context(), runlog.Plain([]byte("late"))); read || err != nil || time.Since(began) != 0 {
			t.Errorf("what comes late is shown: %t, %v", read, err)
		}
	})
}
