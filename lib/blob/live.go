package blob

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"gocloud.dev/blob"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// PutLive writes what a blob of this Ref is so far, over what was written before. It lies apart from the blob, at a place that the Ref alone tells,
// and goes with its day of expiry. No backup has it. After an error it may lie there; of concurrent writes one stays, whole.
func (b *Bucket) PutLive(ctx context.Context, ref Ref, data []byte) error {
	name, err := ref.name()
	if err != nil {
		return err
	}
	if len(data) > MaxBytes {
		return invalid.Field(string(ref.Kind), strconv.Itoa(len(data))+" bytes", fmt.Sprintf("at most %d bytes", MaxBytes))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.bucket.Upload(ctx, name+live, bytes.NewReader(data), &blob.WriterOptions{ContentType: "application/octet-stream"}); err != nil {
		return fmt.Errorf("put live blob %s: %w", name, unavailable(err))
	}
	return nil
}

// GetLive reads what PutLive wrote last for a Ref, whose tenant is the caller's. ErrNotFound: nothing, or it has gone. No hash tells whether it is
// what was written.
func (b *Bucket) GetLive(ctx context.Context, ref Ref) ([]byte, error) {
	name, err := ref.name()
	if err != nil {
		return nil, err
	}
	data, err := b.read(ctx, name+live)
	if err != nil {
		return nil, fmt.Errorf("get live blob %s: %w", name, err)
	}
	return data, nil
}
