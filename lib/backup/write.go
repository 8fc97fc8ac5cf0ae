package backup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Source is what a backup is made of. It may be in use.
type Source struct {
	Store   store.Portable
	Blobs   *blob.Bucket
	Now     func() time.Time
	Version string // of this Belfry
}

// Write writes a backup. told, nil for nobody, hears after every part how far it is. After an error the stream has no end,
// which whoever reads it will find.
func Write(ctx context.Context, out io.Writer, from Source, told func(Count)) (About, Count, error) {
	about := About{Taken: from.Now(), Version: from.Version}
	w, err := newWriter(out, about)
	if err != nil {
		return about, Count{}, err
	}
	add := func(kind byte, e Entry, frame any) error {
		if err := w.frame(kind, frame); err != nil {
			return err
		}
		w.count.add(e)
		if told != nil {
			told(w.count)
		}
		return nil
	}
	err = from.Store.Export(ctx, func(item store.Item) error { return add(kindItem, Entry{Item: item}, frameOf(item)) })
	if err != nil {
		return about, w.count, fmt.Errorf("back up the store: %w", err)
	}
	// The items are of one instant that is over: all blobs that they name are there. See doc.go.
	err = from.Blobs.Each(ctx, about.Taken, func(name string, data []byte) error {
		return add(kindBlob, Entry{Name: name, Data: data}, blobFrame{Name: name, Data: data})
	})
	if err != nil {
		return about, w.count, fmt.Errorf("back up the blobs: %w", err)
	}
	return about, w.count, w.close()
}

type writer struct {
	out   *zstd.Encoder
	sum   hash.Hash
	count Count
}

func newWriter(out io.Writer, about About) (*writer, error) {
	if _, err := io.WriteString(out, firstLine+strconv.Itoa(Form)+"\n"); err != nil {
		return nil, err
	}
	// One goroutine less to wait for, and a window that a small server can spare.
	encoder, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	w := &writer{out: encoder, sum: sha256.New()}
	return w, w.frame(kindHeader, header{Taken: about.Taken.UnixMilli(), Version: about.Version})
}

func (w *writer) frame(kind byte, v any) error {
	body, err := record.Encode(v)
	if err != nil {
		return err
	}
	head := binary.AppendUvarint([]byte{kind}, uint64(len(body)))
	for _, part := range [][]byte{head, body} {
		w.sum.Write(part)
		if _, err := w.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) close() error {
	if err := w.frame(kindEnd, end{Items: w.count.Items, Blobs: w.count.Blobs, Sum: w.sum.Sum(nil)}); err != nil {
		return err
	}
	return w.out.Close()
}
