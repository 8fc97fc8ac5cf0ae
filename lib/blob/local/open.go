// Package local opens the buckets that need no service: a folder of files, and memory.
package local

import (
	"context"
	"net/url"
	"path/filepath"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Open opens "file:///an/absolute/folder", which it makes when it is not there, or "mem://", which is empty and goes with
// the process. A folder belongs to one process at a time; whoever opens it sees to that.
func Open(ctx context.Context, where string) (*blob.Bucket, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if where == "mem://" {
		return blob.New(memblob.OpenBucket(nil)), nil
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "file" || u.Host+u.RawQuery+u.Fragment != "" || !filepath.IsAbs(u.Path) {
		return nil, invalid.Field("blob", where, `"file:///an/absolute/folder" or "mem://"`)
	}
	return OpenOn(Host{}, filepath.Clean(u.Path))
}

// OpenOn opens a folder of a disk, as Open opens one of this machine's.
func OpenOn(disk Disk, dir string) (*blob.Bucket, error) {
	folder, err := openFolder(disk, dir)
	if err != nil {
		return nil, err
	}
	return blob.New(gocloud.NewBucket(folder)), nil
}

// View opens a folder of this machine's, an absolute path, to be read alone: it makes nothing, also where the folder is not there, and
// leaves what others are writing.
func View(dir string) *blob.Bucket {
	return blob.New(gocloud.NewBucket(&folder{dir: filepath.Clean(dir), disk: Host{}, durable: map[string]bool{}}))
}
