package backup

import (
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// What a caller decides on.
var (
	// ErrNotBackup says that the stream is something else.
	ErrNotBackup = errors.New("this is not a backup of Belfry")
	// ErrTorn says that the stream ends before its end.
	ErrTorn = errors.New("the backup is cut short: it ends before its last part. Take it from where it is whole")
	// ErrDamaged says that the stream is not what was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNewer says that a newer Belfry wrote it.
	ErrNewer = record.ErrNewer
)

// Form is the newest form of backups that this build reads, and the one that it writes.
const Form = 1

const firstLine = "belfry-backup "

// The kinds of frames.
const (
	kindHeader byte = 'h'
	kindItem   byte = 'i'
	kindBlob   byte = 'b'
	kindEnd    byte = 'e'
)

// maxFrame is above any part: the largest is a blob, with its name.
const maxFrame = blob.MaxBytes + 64<<10

// About says what a backup is.
type About struct {
	Taken   time.Time // the instant of its items
	Version string    // of the Belfry that wrote it
}

// Count is how much a backup holds, or has held so far.
type Count struct {
	Items int
	Blobs int
	Bytes int64 // of keys, values and blobs
}

func (c *Count) add(e Entry) {
	if e.Item.Exists() {
		c.Items++
		c.Bytes += int64(e.Item.Size())
	} else {
		c.Blobs++
		c.Bytes += int64(len(e.Name) + len(e.Data))
	}
}

// Entry is a part of a backup: an item, or a blob with its name where the item does not exist.
type Entry struct {
	Item store.Item
	Name string
	Data []byte
}

type header struct {
	Taken   int64  `cbor:"1,keyasint"` // Unix ms
	Version string `cbor:"2,keyasint,omitempty"`
}

type itemFrame struct {
	Partition []byte `cbor:"1,keyasint"`
	Sort      []byte `cbor:"2,keyasint"`
	Version   uint64 `cbor:"3,keyasint"`
	Value     []byte `cbor:"4,keyasint,omitempty"`
	Expires   int64  `cbor:"5,keyasint,omitempty"` // Unix seconds
	Attempt   uint64 `cbor:"6,keyasint,omitempty"`
}

type blobFrame struct {
	Name string `cbor:"1,keyasint"`
	Data []byte `cbor:"2,keyasint,omitempty"`
}

type end struct {
	Items int    `cbor:"1,keyasint"`
	Blobs int    `cbor:"2,keyasint"`
	Sum   []byte `cbor:"3,keyasint"` // SHA-256 of all frames before this one
}

func frameOf(item store.Item) itemFrame {
	return itemFrame{Partition: []byte(item.Partition), Sort: []byte(item.Sort), Version: item.Version, Value: item.Value,
		Expires: store.ExpirySeconds(item.Expires), Attempt: item.Attempt}
}

func (f itemFrame) item() (store.Item, error) {
	item := store.Item{Key: store.Key{Partition: string(f.Partition), Sort: string(f.Sort)}, Version: f.Version, Value: f.Value,
		Expires: store.ExpiryTime(f.Expires), Attempt: f.Attempt}
	if err := store.CheckKeys([]store.Key{item.Key}); err != nil || f.Version == 0 {
		return store.Item{}, fmt.Errorf("%w: item %q, version %d", ErrDamaged, item.Key.String(), f.Version)
	}
	return item, nil
}
