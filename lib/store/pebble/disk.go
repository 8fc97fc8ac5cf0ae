package pebble

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is what a store has done to its log since it was opened. What it says of durability is all in there: no answer is given that
// waited for anything else.
type Disk struct {
	Syncs int64 // each answers all writes that had gathered for it
	Bytes int64
}

// Since is what was done since an earlier look.
func (d Disk) Since(before Disk) Disk { return Disk{d.Syncs - before.Syncs, d.Bytes - before.Bytes} }

// Disk tells what was done so far.
func (s *Store) Disk() Disk { return Disk{Syncs: s.disk.syncs.Load(), Bytes: s.disk.bytes.Load()} }

// diskCount counts for Disk.
type diskCount struct{ syncs, bytes atomic.Int64 }

func isLog(fs vfs.FS, name string) bool { return strings.HasSuffix(fs.PathBase(name), ".log") }

// logFile is a log that is being written.
type logFile struct {
	vfs.File
	count *diskCount
}

func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.count.bytes.Add(int64(n))
	return n, err
}

func (f *logFile) Sync() error {
	err := f.File.Sync()
	f.count.syncs.Add(1)
	return err
}

func (f *logFile) SyncData() error {
	err := f.File.SyncData()
	f.count.syncs.Add(1)
	return err
}
