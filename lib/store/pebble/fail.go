package pebble

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// fail stops the engine for good. After a failed write or sync nobody knows what the disk holds (a second fsync may say yes
// to what the first one lost), so nothing may be acknowledged any more, and nothing read: it could be what was lost.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		s.log.Error("the store stops: its disk failed", "error", err)
		close(s.failed)
	})
}

// broken is the failure, nil while all is well.
func (s *Store) broken() error {
	select {
	case <-s.failed:
		return s.failure
	default:
		return nil
	}
}

// apply hands a batch to Pebble. Pebble panics when its log cannot be written, and by then holds locks that no one will
// release; only one goroutine ever comes here, so no caller can be caught behind them.
func (s *Store) apply(b *pebble.Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write the log: %v", p)
		}
		if err != nil {
			s.fail(err)
		} else {
			err = s.broken()
		}
	}()
	return s.db.ApplyNoSyncWait(b, pebble.Sync)
}

// pebbleLog keeps Pebble's chatter out of the program's log. What Pebble calls fatal would end the process by default;
// here it stops the engine.
type pebbleLog struct{ s *Store }

func (l pebbleLog) Infof(string, ...any) {}

func (l pebbleLog) Errorf(form string, args ...any) {
	l.s.log.Error("the store's engine: " + fmt.Sprintf(form, args...))
}

func (l pebbleLog) Fatalf(form string, args ...any) { l.s.fail(fmt.Errorf(form, args...)) }
