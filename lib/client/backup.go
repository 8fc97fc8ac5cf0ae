package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// silence is how long a server may send nothing of a backup.
const silence = time.Minute

// Backup asks for a backup of all that the server has. The answer is read while the server writes it, and is whole only where its
// reader says so: see package backup. It takes as long as its reader; a server that says nothing for a minute ends it, and ctx.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{address: c.Address(), cancel: cancel, quiet: time.AfterFunc(silence, func() {
		cancel(errors.New("it sent nothing for " + silence.String()))
	})}
	answer, err := c.begin(ctx, "/v1/backup") //nolint:bodyclose // the stream that is made of it closes it
	if err != nil {
		s.end()
		if errors.As(err, new(unsent)) {
			return nil, err
		}
		return nil, s.lost(ctx, err)
	}
	s.ctx, s.ReadCloser = ctx, answer.Body
	if answer.StatusCode >= 300 {
		defer s.Close()
		text, _ := io.ReadAll(io.LimitReader(s, maxAnswer)) // where that is no problem document, Refused says so
		return nil, Refused(answer, text)
	}
	return s, nil
}

// begin sends a GET whose answer may take any time.
func (c *Client) begin(ctx context.Context, path string) (*http.Response, error) {
	at := *c.base
	at.Path += path
	at.RawPath = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if err := c.authorize(req, nil); err != nil {
		return nil, err
	}
	lasting := *c.cfg.HTTP
	lasting.Timeout = 0
	return lasting.Do(req)
}

// stream is an answer that is read as it comes.
type stream struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // of the answer that it reads, which it ends
	cancel  context.CancelCauseFunc
	address string
	quiet   *time.Timer
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.quiet.Reset(silence)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.lost(s.ctx, err)
	}
	return n, err
}

func (s *stream) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return &Unreachable{Address: s.address, Err: reason(err)}
}

func (s *stream) end() {
	s.quiet.Stop()
	s.cancel(nil)
}

func (s *stream) Close() error {
	defer s.end()
	return s.ReadCloser.Close()
}
