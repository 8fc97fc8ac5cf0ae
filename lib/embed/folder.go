package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
)

// ErrInUse says that another process, or another Data in this one, has the folder.
var ErrInUse = errors.New("in use by another Belfry")

// Unfinished is where a restore works, below the data folder, so that a restore that is cut short is no data folder.
const Unfinished = ".restoring"

// StoreFolder is where the store of a data folder lies.
func StoreFolder(data string) string { return filepath.Join(data, "store") }

// BlobFolder is where its blobs lie.
func BlobFolder(data string) string { return filepath.Join(data, "blobs") }

// OpenStore opens the store of a data folder, both made when they are not there. now is the clock that expiry goes by.
func OpenStore(data string, log *slog.Logger, now func() time.Time) (*pebble.Store, error) {
	if _, err := os.Stat(filepath.Join(data, Unfinished)); err == nil {
		return nil, fmt.Errorf("data folder %s holds a restore that was cut short: remove it, and restore again", data)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	opened, err := pebble.Open(pebble.Config{Dir: StoreFolder(data), Logger: log, Now: now})
	if errors.Is(err, pebble.ErrLocked) {
		return nil, fmt.Errorf("data folder %s is %w", data, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	return opened, nil
}

// ViewBlobs opens the blobs of a data folder to be read alone, and changes nothing there.
func ViewBlobs(data string) (*blob.Bucket, error) {
	path, err := filepath.Abs(BlobFolder(data))
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	return bloblocal.View(path), nil
}

// OpenBlobs opens the blobs of a data folder. Whoever does has its store open.
func OpenBlobs(ctx context.Context, data string) (*blob.Bucket, error) {
	path, err := filepath.Abs(BlobFolder(data))
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	opened, err := bloblocal.Open(ctx, where.String())
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	return opened, nil
}
