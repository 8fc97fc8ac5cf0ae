package lease

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// LogReader reads what attempts of other processes on the store have written so far. It touches the run: its record is written as it is, so that
// the worker comes upon the write with its next renewal, and shows the log for a while. Nothing that decides about the run changes, so a touch may be
// lost, late or doubled. A worker that nobody reads writes and reads no more than it would without.
type LogReader struct {
	dispatch *dispatch.Dispatcher
	blobs    *blob.Bucket
	log      *slog.Logger

	readers readers
}

// NewLogReader gives a reader of logs that lie in a bucket.
func NewLogReader(d *dispatch.Dispatcher, blobs *blob.Bucket, log *slog.Logger) *LogReader {
	return &LogReader{dispatch: d, blobs: blobs, log: log}
}

const (
	lookEvery  = 2 * time.Second
	touchEvery = readFor / 2 // so that one that is lost ends nothing
	touchFor   = 2 * time.Second
)

// LiveLog is what the newest attempt of a run has written so far, as of some seconds ago; false where it is not known. It has its worker asked for it,
// so that it is known to those who ask again.
func (l *LogReader) LiveLog(ctx context.Context, r run.Run) (runlog.Log, bool) {
	if r.State != run.Running || r.Heads() {
		return runlog.Log{}, false
	}
	which := reading{r.Tenant, r.ID.String()}
	touch, look := l.ask(which, r.Fence, r.MayTouch(r.Fence))
	if touch {
		if err := l.touch(ctx, r); err != nil {
			l.log.DebugContext(ctx, "a worker was not asked for its log", "run", which.run, "error", err)
			l.change(which, r.Fence, func(read *readLog) { read.touch = 0 }) // with the next look
		}
	}
	if look {
		data, err := l.blobs.GetLive(ctx, liveRef(r))
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			l.log.WarnContext(ctx, "what a worker shows of a log cannot be read", "run", which.run, "error", err)
		}
		if log := runlog.Decode(data); err == nil && log.Attempt == r.Attempt {
			l.change(which, r.Fence, func(read *readLog) {
				if log.Written() > read.log.Written() {
					read.log = log
				}
			})
		}
	}
	var log runlog.Log
	l.change(which, r.Fence, func(read *readLog) { log = read.log })
	return log, log.Attempt != 0
}

// ask notes that somebody reads a log, and tells what is to be done for it now: of many who read one at once, one does it. A touch that may not be
// made yet stays due.
func (l *LogReader) ask(which reading, fence uint64, mayTouch bool) (touch, look bool) {
	now := l.dispatch.Elapsed()
	l.readers.mu.Lock()
	defer l.readers.mu.Unlock()
	read := l.readers.note(which, now)
	if read == nil || read.fence > fence {
		return false, false
	}
	if read.fence < fence {
		*read = readLog{asked: now, fence: fence}
	}
	if look = now >= read.look; look {
		read.look = now + lookEvery
		if touch = mayTouch && now >= read.touch; touch {
			read.touch = now + touchEvery
		}
	}
	return touch, look
}

// change has something done to what is known of the log of an attempt, if anything is.
func (l *LogReader) change(which reading, fence uint64, do func(*readLog)) {
	l.readers.mu.Lock()
	defer l.readers.mu.Unlock()
	if read := l.readers.of[which]; read != nil && read.fence == fence {
		do(read)
	}
}

// touch writes the run as it stands, while an attempt holds it that has written it since its start.
func (l *LogReader) touch(ctx context.Context, r run.Run) error {
	ctx, cancel := context.WithTimeout(ctx, touchFor)
	defer cancel()
	fence := r.Fence
	for range maxRounds {
		now, err := l.dispatch.Clock()
		if err != nil {
			return err
		}
		if !r.MayTouch(fence) || l.dispatch.LeaseOver(r.Lease, now) {
			return nil
		}
		_, err = l.dispatch.PutRun(ctx, r, job.Callbacks{}, now)
		conflict := store.AsConflict(err)
		if conflict == nil {
			return err
		}
		if r, _, err = run.FromItem(r.Tenant, r.ID, conflict.Standing); err != nil {
			return err
		}
	}
	return nil // its worker writes it all the time
}
