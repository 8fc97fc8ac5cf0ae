package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// MaxBytes is the size of the largest blob. Reads hold one whole in memory, and never more.
const MaxBytes = 16 << 20

const putTries = 5

// What a caller decides on.
var (
	// ErrNotFound says that no blob of this tenant has the key.
	ErrNotFound = errors.New("no such blob")
	// ErrExists says that another content stands under the same Ref. It was not touched.
	ErrExists = errors.New("another blob stands there")
	// ErrCorrupt says that what was read is not what was put.
	ErrCorrupt = errors.New("the blob is damaged")
	// ErrUnavailable says that the bucket does not do what it is asked: it is away, full, over its capacity, not there at all, or lets
	// nobody in. What was to be put may stand. Try later.
	ErrUnavailable = errors.New("the store of blobs is not to be had")
)

// unavailable tells of an error of the engine for what it is. A mistake of ours in asking stays one, and who gave up knows why.
func unavailable(err error) error {
	code := gcerrors.Code(err)
	if code == gcerrors.InvalidArgument || code == gcerrors.Unimplemented || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Bucket is where the blobs of all tenants lie. Its methods may be called concurrently.
type Bucket struct {
	bucket *blob.Bucket

	mu      sync.Mutex
	damaged map[string]bool // by name
}

// New takes over a bucket whose driver honours IfNotExist atomically and is durable when a write was closed.
func New(bucket *blob.Bucket) *Bucket { return &Bucket{bucket: bucket} }

// Close ends the bucket. What was put stays.
func (b *Bucket) Close() error { return b.bucket.Close() }

// Put writes a blob where none stands and gives its key. Putting the same content again gives the same key, so that a Put
// whose answer was lost may be repeated; another content gives ErrExists. After any other error the blob may stand there.
func (b *Bucket) Put(ctx context.Context, ref Ref, data []byte) (key string, err error) {
	name, err := ref.name()
	if err != nil {
		return "", err
	}
	if len(data) > MaxBytes {
		return "", invalid.Field(string(ref.Kind), strconv.Itoa(len(data))+" bytes", fmt.Sprintf("at most %d bytes", MaxBytes))
	}
	return b.put(ctx, name, data)
}

func (b *Bucket) put(ctx context.Context, name string, data []byte) (key string, err error) {
	for range putTries {
		// Asked here, because not every driver does.
		if err := ctx.Err(); err != nil {
			return "", err
		}
		// Upload gives the driver the whole content. WriteAll would hand it over piece by piece, which lets Azure's driver panic where
		// the service refuses the first one (gocloud.dev v0.47.0: its writer's Close and its upload share a pipe without a lock).
		err = b.bucket.Upload(ctx, name, bytes.NewReader(data), &blob.WriterOptions{
			ContentType: "application/octet-stream",
			IfNotExist:  true,
		})
		if err == nil {
			return keyOf(name, data), nil
		}
		// What is said where an object stands differs between services.
		if code := gcerrors.Code(err); code != gcerrors.FailedPrecondition && code != gcerrors.AlreadyExists {
			return "", fmt.Errorf("put blob %s: %w", name, unavailable(err))
		}
		var stands []byte
		stands, err = b.read(ctx, name)
		switch {
		case err == nil && bytes.Equal(stands, data):
			return keyOf(name, data), nil
		case err == nil:
			return "", fmt.Errorf("put blob %s: %w", name, ErrExists)
		case !errors.Is(err, ErrNotFound):
			return "", fmt.Errorf("put blob %s: read what stands there: %w", name, err)
		}
		// It was deleted in between.
	}
	return "", fmt.Errorf("put blob %s: %d times something stood there and was gone when read: %w: %w", name, putTries, ErrUnavailable, err)
}

// Get reads the blob of a key. A key of another tenant gives ErrNotFound.
func (b *Bucket) Get(ctx context.Context, tenant, key string) ([]byte, error) {
	data, _, err := b.GetWithin(ctx, tenant, key, MaxBytes)
	return data, err
}

// GetWithin is Get of a blob of at most so many bytes. Of a larger one it gives how large it is, and no data, and reads nothing of it.
func (b *Bucket) GetWithin(ctx context.Context, tenant, key string, most int) (data []byte, size int64, err error) {
	name, sum, err := splitKey(tenant, key)
	if err != nil {
		return nil, 0, fmt.Errorf("get blob: %w", err)
	}
	data, size, err = b.readWithin(ctx, name, int64(most))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("get blob %s: %w", name, err)
	case size > int64(most):
		return nil, size, nil
	case SumOf(data) != sum:
		b.note(name)
		return nil, 0, fmt.Errorf("get blob %s: %d bytes of another hash: %w", name, len(data), ErrCorrupt)
	}
	return data, size, nil
}

// GetRange reads up to most bytes of the blob of a key, from an offset on, and gives how large the whole is. It reads no others, so they are checked against the
// hash where they are the whole alone: who puts parts together checks that by the Sum of the key. Behind the end it gives no data.
func (b *Bucket) GetRange(ctx context.Context, tenant, key string, from, most int64) (data []byte, size int64, err error) {
	name, sum, err := splitKey(tenant, key)
	if err != nil {
		return nil, 0, fmt.Errorf("get blob: %w", err)
	}
	data, size, err = b.readRange(ctx, name, from, most)
	if err == nil && (size > MaxBytes || int64(len(data)) == size && SumOf(data) != sum) {
		b.note(name)
		err = fmt.Errorf("%d of %d bytes, of another hash: %w", len(data), size, ErrCorrupt)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("get blob %s: %w", name, err)
	}
	return data, size, nil
}

// mostNoted bounds the names of damaged blobs that are remembered.
const mostNoted = 10_000

func (b *Bucket) note(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.damaged == nil {
		b.damaged = map[string]bool{}
	}
	if len(b.damaged) < mostNoted {
		b.damaged[name] = true
	}
}

// Damaged tells how many blobs were read that are not what was put, since the bucket was opened: ErrCorrupt was given for each.
func (b *Bucket) Damaged() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.damaged)
}

// Delete removes the blob of a key; one that is gone already is no error. A key of another tenant gives ErrNotFound.
func (b *Bucket) Delete(ctx context.Context, tenant, key string) error {
	name, _, err := splitKey(tenant, key)
	if err != nil {
		return fmt.Errorf("delete blob: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.bucket.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete blob %s: %w", name, unavailable(err))
	}
	return nil
}

// DeleteExpired removes up to max blobs whose day of expiry lies before the day of now, in UTC, the oldest first, and tells
// how many went, also when it ends with an error. Fewer than max and no error: there are no more.
func (b *Bucket) DeleteExpired(ctx context.Context, now time.Time, max int) (n int, err error) {
	list := b.bucket.List(&blob.ListOptions{Prefix: root})
	for n < max {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("list expired blobs: %w", unavailable(err))
		}
		if !expired(object.Key, now) {
			return n, nil
		}
		err = b.bucket.Delete(ctx, object.Key)
		if gcerrors.Code(err) == gcerrors.NotFound {
			continue // another sweep was faster
		}
		if err != nil {
			return n, fmt.Errorf("delete expired blob %s: %w", object.Key, unavailable(err))
		}
		n++
	}
	return n, nil
}

func (b *Bucket) read(ctx context.Context, name string) ([]byte, error) {
	data, _, err := b.readWithin(ctx, name, MaxBytes)
	return data, err
}

// readWithin reads an object of at most so many bytes; of a larger one it gives the size alone. Nothing that was put is over MaxBytes.
func (b *Bucket) readWithin(ctx context.Context, name string, most int64) (data []byte, size int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	r, err := b.bucket.NewReader(ctx, name, nil)
	if err != nil {
		return nil, 0, unread(err)
	}
	defer r.Close()
	if size = r.Size(); size <= most {
		if data, err = io.ReadAll(io.LimitReader(r, MaxBytes+1)); err != nil {
			return nil, 0, unavailable(err)
		}
		size = int64(len(data)) // an engine may not know it before
	}
	if size > MaxBytes {
		b.note(name)
		return nil, 0, fmt.Errorf("over %d bytes: %w", MaxBytes, ErrCorrupt)
	}
	return data, size, nil
}

// readRange reads a part of an object, as far as there is one.
func (b *Bucket) readRange(ctx context.Context, name string, from, most int64) (data []byte, size int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	r, err := b.bucket.NewRangeReader(ctx, name, from, most, nil)
	if err != nil {
		if err = unread(err); errors.Is(err, ErrUnavailable) { // services refuse what begins behind the end, each by a word of its own
			if whole, unknown := b.bucket.Attributes(ctx, name); unknown == nil && from >= whole.Size {
				return nil, whole.Size, nil
			}
		}
		return nil, 0, err
	}
	defer r.Close()
	if data, err = io.ReadAll(io.LimitReader(r, MaxBytes)); err != nil {
		return nil, 0, unavailable(err)
	}
	return data, r.Size(), nil
}

// unread tells of an error of the engine where something was to be read.
func unread(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	return unavailable(err)
}
