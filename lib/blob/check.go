package blob

import (
	"context"
	"errors"
)

// ErrNoBucket says that there is no bucket of that name.
var ErrNoBucket = errors.New("there is no such bucket")

// Check asks whether the bucket is there and may be listed, which is the right that reading and cleaning up need as well.
func (b *Bucket) Check(ctx context.Context) error {
	there, err := b.bucket.IsAccessible(ctx)
	if err == nil && !there {
		return ErrNoBucket
	}
	return err
}
