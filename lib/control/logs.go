package control

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// LogOf gives what an attempt of a run wrote, 0 for the newest that can be told of: while one is under way of which nothing is known here, the one
// before it. It is empty where the attempt wrote nothing. Where it was cleaned up the error is
// blob.ErrNotFound.
func (s *Service) LogOf(ctx context.Context, r run.Run, attempt int) (runlog.Log, error) {
	if attempt > r.Attempt {
		want := "1 to " + strconv.Itoa(r.Attempt)
		if r.Attempt == 0 {
			want = "none: no attempt of the run has begun yet"
		}
		return runlog.Log{}, invalid.Field("attempt", strconv.Itoa(attempt), want)
	}
	if r.State == run.Running && (attempt == 0 || attempt == r.Attempt) {
		if s.LiveLog != nil {
			if live, ok := s.LiveLog(ctx, r); ok && live.Attempt == r.Attempt {
				return live, nil
			}
		}
		if attempt == r.Attempt {
			return runlog.Log{Attempt: attempt}, nil // it runs elsewhere, or has only just ended: its log is still to come
		}
	}
	if attempt == 0 && r.State != run.Running {
		attempt = r.Attempt
	}
	return s.keptLog(ctx, r, attempt)
}

// keptLog looks for the log of an attempt that has ended, 0 for the newest that was kept, from that to the ones before it.
func (s *Service) keptLog(ctx context.Context, r run.Run, attempt int) (runlog.Log, error) {
	none := runlog.Log{Attempt: attempt}
	newest := r.Attempt + 1
	for key := r.Log; key != ""; {
		data, err := s.Blobs.Get(ctx, r.Tenant, key)
		if err != nil {
			return runlog.Log{}, err
		}
		log := runlog.Decode(data)
		if log.Attempt == 0 { // of a version before
			log.Attempt = newestBefore(r, key)
		}
		switch {
		case log.Attempt >= newest:
			return runlog.Log{}, fmt.Errorf("log of attempt %d of run %s: %w", log.Attempt, r.ID, blob.ErrCorrupt)
		case attempt == 0, log.Attempt == attempt:
			return log, nil
		case log.Attempt < attempt:
			return none, nil
		}
		key, newest = log.Earlier, log.Attempt
	}
	return none, nil
}

// newestBefore is the attempt whose log a version before has kept, which kept that of the newest that had ended.
func newestBefore(r run.Run, key string) int {
	name, _, _ := strings.Cut(key, "#")
	if r.State == run.Running || !strings.HasSuffix(name, "~"+strconv.FormatUint(r.Fence, 10)) {
		return r.Attempt - 1
	}
	return r.Attempt
}
