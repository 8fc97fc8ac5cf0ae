package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	gocdk "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// metered is a bucket that counts what is read of it, in bytes.
type metered struct {
	driver.Bucket
	of   *gocdk.Bucket
	read int
}

type meter struct {
	*gocdk.Reader
	of *metered
}

func (m meter) Read(p []byte) (n int, err error) {
	n, err = m.Reader.Read(p)
	m.of.read += n
	return n, err
}

func (m meter) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: m.Size()}
}

func (m *metered) Close() error { return m.of.Close() }

func (m *metered) NewRangeReader(ctx context.Context, key string, from, most int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	r, err := m.of.NewRangeReader(ctx, key, from, most, nil)
	return meter{r, m}, err
}

// Who reads a large result in parts has each byte of it read once.
func TestAPartIsAllThatIsRead(t *testing.T) {
	whole := strings.Repeat("0123456789abcdef", 1<<20)
	memory := &metered{of: memblob.OpenBucket(nil)}
	s := control.Service{Config: control.Config{Blobs: blob.New(gocdk.NewBucket(memory))}}
	key, err := blob.New(memory.of).Put(t.Context(), blob.Ref{Tenant: "acme", Kind: blob.Result, ID: "r", Expires: time.Now().AddDate(0, 0, 9)}, []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]run.Ref{"in a blob": {Blob: key}, "in the record": {Inline: []byte(whole)}} {
		memory.read = 0
		var got strings.Builder
		for got.Len() < len(whole) {
			part, err := s.Part(t.Context(), "acme", of, int64(got.Len()), 5<<20)
			if err != nil || len(part.Data) == 0 || part.Size != int64(len(whole)) || part.Sum != blob.SumOf([]byte(whole)) {
				t.Fatalf("%s: from %d on it has %d bytes of %d, sum %q, %v", name, got.Len(), len(part.Data), part.Size, part.Sum, err)
			}
			got.Write(part.Data)
		}
		if got.String() != whole || of.Blob != "" && memory.read != len(whole) {
			t.Errorf("%s: %d bytes were read for one of %d", name, memory.read, len(whole))
		}
		if part, err := s.Part(t.Context(), "acme", of, int64(len(whole))+1, 5); err != nil || len(part.Data) != 0 || part.Size != int64(len(whole)) {
			t.Errorf("%s: behind the end there are %d bytes of %d, %v", name, len(part.Data), part.Size, err)
		}
	}
}
