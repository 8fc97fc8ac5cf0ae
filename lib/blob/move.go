package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Each gives every blob of every tenant that has not expired at now, one at a time, with the name that it lies under: what a
// backup copies. Blobs that are put or deleted meanwhile may be among them or not; what is live is not. An error of each ends it.
func (b *Bucket) Each(ctx context.Context, now time.Time, each func(name string, data []byte) error) error {
	list := b.bucket.List(&blob.ListOptions{Prefix: root})
	for {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list blobs: %w", err)
		}
		if !names.MatchString(object.Key) || strings.HasSuffix(object.Key, live) || expired(object.Key, now) {
			continue
		}
		data, err := b.read(ctx, object.Key)
		if errors.Is(err, ErrNotFound) {
			continue // deleted since it was listed: whatever named it has expired
		}
		if err != nil {
			return fmt.Errorf("read blob %s: %w", object.Key, err)
		}
		if err := each(object.Key, data); err != nil {
			return err
		}
	}
}

// Restore puts a blob under a name that Each gave, as Put does.
func (b *Bucket) Restore(ctx context.Context, name string, data []byte) error {
	if parts := names.FindStringSubmatch(name); parts == nil || !tenants.MatchString(parts[2]) || !ids.MatchString(parts[5]) {
		return invalid.Field("name", name, "the name of a blob, as Each gives it")
	}
	_, err := b.put(ctx, name, data)
	return err
}
