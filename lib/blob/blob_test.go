package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/belfry-scheduler/belfry/lib/blob"
)

// sick is an engine that fails at everything, with an error of one class.
type sick struct {
	driver.Bucket
	code gcerrors.ErrorCode
}

var errSick = errors.New("the engine is sick")

func (s sick) ErrorCode(error) gcerrors.ErrorCode { return s.code }
func (s sick) ErrorAs(error, any) bool            { return false }
func (s sick) Close() error                       { return nil }

func (s sick) NewTypedWriter(context.Context, string, string, *driver.WriterOptions) (driver.Writer, error) {
	return &lost{}, nil
}

func (s sick) NewRangeReader(context.Context, string, int64, int64, *driver.ReaderOptions) (driver.Reader, error) {
	return nil, errSick
}

func (s sick) Attributes(context.Context, string) (*driver.Attributes, error) { return nil, errSick }

func (s sick) Delete(context.Context, string, *driver.DeleteOptions) error { return errSick }

func (s sick) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	return nil, errSick
}

// lost is a content that the engine takes, and cannot keep.
type lost struct{ bytes.Buffer }

func (*lost) Close() error { return errSick }

// keyOf is the key of a blob that stood in a bucket which was well.
func keyOf(t *testing.T, ref blob.Ref) string {
	t.Helper()
	b := blob.New(memblob.OpenBucket(nil))
	defer b.Close()
	key, err := b.Put(t.Context(), ref, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestEveryClassOfError: whatever keeps the engine from its work, who asks is told to try later; but for a mistake in asking, which
// later is one too.
func TestEveryClassOfError(t *testing.T) {
	for _, code := range []gcerrors.ErrorCode{gcerrors.Unknown, gcerrors.NotFound, gcerrors.AlreadyExists, gcerrors.InvalidArgument, gcerrors.Internal,
		gcerrors.Unimplemented, gcerrors.FailedPrecondition, gcerrors.PermissionDenied, gcerrors.ResourceExhausted, gcerrors.Canceled, gcerrors.DeadlineExceeded} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			healthy := blob.Ref{Tenant: "default", Kind: blob.Payload, ID: "a", Expires: time.Unix(1<<31, 0)}
			b := blob.New(gocloud.NewBucket(sick{code: code}))
			defer b.Close()
			_, put := b.Put(t.Context(), healthy, []byte("text"))
			wanted := code != gcerrors.InvalidArgument && code != gcerrors.Unimplemented
			if errors.Is(put, blob.ErrUnavailable) != wanted {
				t.Errorf("put: got %v; unavailable: want %t", put, wanted)
			}
			key := keyOf(t, healthy)
			_, get := b.Get(t.Context(), "default", key)
			absent := code == gcerrors.NotFound
			if errors.Is(get, blob.ErrUnavailable) != (wanted && !absent) || errors.Is(get, blob.ErrNotFound) != absent {
				t.Errorf("get: got %v", get)
			}
			_, _, part := b.GetRange(t.Context(), "default", key, 1, 2)
			if errors.Is(part, blob.ErrUnavailable) != (wanted && !absent) || errors.Is(part, blob.ErrNotFound) != absent {
				t.Errorf("get a part: got %v", part)
			}
			gone := b.Delete(t.Context(), "default", key)
			if errors.Is(gone, blob.ErrUnavailable) != (wanted && !absent) {
				t.Errorf("delete: got %v", gone)
			}
			if _, err := b.DeleteExpired(t.Context(), time.Now(), 1); errors.Is(err, blob.ErrUnavailable) != wanted {
				t.Errorf("delete what has expired: got %v", err)
			}
		})
	}
	for _, gaveUp := range []error{context.Canceled, context.DeadlineExceeded} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("enough: %w", gaveUp))
		b := blob.New(gocloud.NewBucket(sick{}))
		if _, err := b.Get(ctx, "default", keyOf(t, blob.Ref{Tenant: "default", Kind: blob.Log, ID: "a", Expires: time.Unix(1<<31, 0)})); errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("who gave up was told that the engine is away: %v", err)
		}
		b.Close()
	}
}
