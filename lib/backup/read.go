package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/belfry-scheduler/belfry/lib/record"
)

// Reader reads a backup part by part.
type Reader struct {
	About About

	zstd  *zstd.Decoder
	in    *bufio.Reader
	sum   hash.Hash
	count Count
	done  bool
}

// Open reads the beginning. Errors: ErrNotBackup, ErrNewer, ErrTorn, ErrDamaged, and those of the stream.
func Open(in io.Reader) (*Reader, error) {
	plain := bufio.NewReader(in)
	if err := readForm(plain); err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r := &Reader{zstd: decoder, in: bufio.NewReader(decoder), sum: sha256.New()}
	kind, body, err := r.frame()
	if err == nil && kind != kindHeader {
		err = fmt.Errorf("%w: it does not begin with its header", ErrDamaged)
	}
	var h header
	if err == nil {
		err = read(body, &h)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	r.About = About{Taken: time.UnixMilli(h.Taken).UTC(), Version: h.Version}
	return r, nil
}

// readForm reads the first line.
func readForm(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	number, ours := strings.CutPrefix(strings.TrimSuffix(string(line), "\n"), firstLine)
	form, bad := strconv.Atoi(number)
	switch {
	case errors.Is(err, io.EOF) && len(line) > 0 && (ours || strings.HasPrefix(firstLine, string(line))):
		return ErrTorn
	case !ours || bad != nil || form < 1:
		return fmt.Errorf("%w: want a file that belfry backup wrote", ErrNotBackup)
	case form > Form:
		return fmt.Errorf("the backup has form %d, this Belfry reads up to %d: %w; use that version", form, Form, ErrNewer)
	}
	return nil
}

// Close ends the reading.
func (r *Reader) Close() { r.zstd.Close() }

// Count is how much was read.
func (r *Reader) Count() Count { return r.count }

// Next gives the next part, and io.EOF when the end was reached and all is as it was written. What Next gave before may be wrong
// when it ends with another error: nothing may be relied on before io.EOF.
func (r *Reader) Next() (Entry, error) {
	if r.done {
		return Entry{}, io.EOF
	}
	sum := r.sum.Sum(nil) // of what lies before this frame
	kind, body, err := r.frame()
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	switch kind {
	case kindItem:
		var f itemFrame
		if err := read(body, &f); err != nil {
			return Entry{}, err
		}
		if e.Item, err = f.item(); err != nil {
			return Entry{}, err
		}
	case kindBlob:
		var f blobFrame
		if err := read(body, &f); err != nil {
			return Entry{}, err
		}
		e.Name, e.Data = f.Name, f.Data
	case kindEnd:
		return Entry{}, r.end(body, sum)
	default:
		return Entry{}, fmt.Errorf("%w: a part of kind %q", ErrDamaged, kind)
	}
	r.count.add(e)
	return e, nil
}

// end compares what was read with what was written.
func (r *Reader) end(body, sum []byte) error {
	var e end
	if err := read(body, &e); err != nil {
		return err
	}
	if e.Items != r.count.Items || e.Blobs != r.count.Blobs || !bytes.Equal(e.Sum, sum) {
		return fmt.Errorf("%w: its checksum does not fit", ErrDamaged)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it goes on behind its end", ErrDamaged)
	}
	r.done = true
	return io.EOF
}

func (r *Reader) frame() (kind byte, body []byte, err error) {
	if kind, err = r.in.ReadByte(); err != nil {
		return 0, nil, r.broken(err)
	}
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return 0, nil, r.broken(err)
	}
	if size > maxFrame {
		return 0, nil, fmt.Errorf("%w: a part of %d bytes", ErrDamaged, size)
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(r.in, body); err != nil {
		return 0, nil, r.broken(err)
	}
	r.sum.Write(binary.AppendUvarint([]byte{kind}, size))
	r.sum.Write(body)
	return kind, body, nil
}

// broken tells an end that comes too early from damage.
func (r *Reader) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func read(body []byte, v any) error {
	err := record.Decode(body, v)
	if errors.Is(err, record.ErrBroken) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Verify reads a whole backup and gives nil where it is whole.
func Verify(ctx context.Context, in io.Reader, told func(Count)) (About, Count, error) {
	r, err := Open(in)
	if err != nil {
		return About{}, Count{}, err
	}
	defer r.Close()
	err = r.each(ctx, told, func(Entry) error { return nil })
	return r.About, r.count, err
}

// each hands on all parts; nil when the end was reached and fits.
func (r *Reader) each(ctx context.Context, told func(Count), do func(Entry) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(e); err != nil {
			return err
		}
		if told != nil {
			told(r.count)
		}
	}
}
