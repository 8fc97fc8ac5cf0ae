package control

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// LogText is what an attempt wrote.
type LogText struct {
	Attempt int    // which one, counted from 1; 0 where none has written yet
	Text    []byte // all that is kept of it; of one under way, what it has written so far
}

// Tail gives where the last bytes of a log begin, at most so many: with a line, or within one that is longer, with a character.
func (l LogText) Tail(bytes int) (offset int) {
	at := len(l.Text) - bytes
	if at <= 0 {
		return 0
	}
	if l.Text[at-1] == '\n' {
		return at
	}
	if line := slices.Index(l.Text[at:], '\n') + 1; line > 0 && at+line < len(l.Text) {
		return at + line
	}
	for range utf8.UTFMax - 1 { // what is no text has no characters to look for
		if at == len(l.Text) || utf8.RuneStart(l.Text[at]) {
			break
		}
		at++
	}
	return at
}

// LogOf gives what an attempt of a run wrote, 0 for the newest that can be told of: the one under way where it is in this process,
// else the newest that ended. Of the others nothing is kept: blob.ErrNotFound, as for a log that was cleaned up.
func (s *Service) LogOf(ctx context.Context, r run.Run, attempt int) (LogText, error) {
	kept := LogText{Attempt: r.Attempt}
	if r.State == run.Running {
		kept.Attempt--
		if s.LiveLog != nil && (attempt == 0 || attempt == r.Attempt) {
			if live, text, ok := s.LiveLog(r.Tenant, r.ID); ok && live == r.Attempt {
				return LogText{Attempt: live, Text: text}, nil
			}
		}
		if attempt == r.Attempt {
			return LogText{Attempt: attempt}, nil // it runs elsewhere, or has only just ended: its log is still to come
		}
	}
	if attempt != 0 && attempt != kept.Attempt {
		return LogText{}, fmt.Errorf("attempt %d, where only the log of attempt %d is kept: %w", attempt, kept.Attempt, blob.ErrNotFound)
	}
	var err error
	kept.Text, err = s.Logs(ctx, r)
	return kept, err
}
