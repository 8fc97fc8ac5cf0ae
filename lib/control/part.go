package control

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Part is some of what a record holds or names.
type Part struct {
	Data []byte
	Size int64  // of the whole, in bytes
	Sum  string // of the whole, as blob.SumOf gives it
}

// Part reads up to most bytes of what a record holds or names, from an offset on; behind the end there are none. What is gone is blob.ErrNotFound.
func (s *Service) Part(ctx context.Context, tenant string, of run.Ref, from, most int64) (Part, error) {
	if of.Blob != "" {
		data, size, err := s.Blobs.GetRange(ctx, tenant, of.Blob, from, most)
		return Part{Data: data, Size: size, Sum: blob.Sum(of.Blob)}, err
	}
	size := int64(len(of.Inline))
	from = min(from, size)
	return Part{Data: of.Inline[from:min(from+most, size)], Size: size, Sum: blob.SumOf(of.Inline)}, nil
}

// Result gives what a run's target answered, nil for nothing, and the media type that the target named, "" for none.
func (s *Service) Result(ctx context.Context, r run.Run) (data []byte, mediaType string, err error) {
	part, err := s.Part(ctx, r.Tenant, r.Result, 0, blob.MaxBytes)
	return part.Data, r.Result.Type, err
}
