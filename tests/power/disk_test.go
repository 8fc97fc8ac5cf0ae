package power

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/blob/local"
)

// disk is a file system whose power is cut once. It is a vfs.FS for the store; blobs gives its other face, for the blob folder.
type disk struct {
	*vfs.MemFS
	random *rand.Rand

	// Held for reading by every change of the disk and by everything that the outside hears of, for writing by the cut: so what was heard
	// before it rests on what was synced before it.
	mu   sync.RWMutex
	dead bool
	cut  chan struct{} // closed by the cut
	left *vfs.MemFS    // what it leaves; set before cut is closed

	failAt int64         // the sync that fails, once, and loses what it was to write; 0: none
	syncs  atomic.Int64  // so far
	failed chan struct{} // closed when it has

	changes  atomic.Int64 // so far
	cutAt    int64        // the change at which it comes; 0: none
	applied  bool         // whether that change is still done
	percent  int          // of what is not synced, each part stays so likely
	slow     time.Duration
	temporal atomic.Int64 // names given out

	// Set before the store is closed: Pebble holds its lock over the last sync then, and may have begun to look at tables, which waits for that lock. To a
	// bubble of synctest a goroutine that waits for a lock is busy, so its clock stands still, and nobody would ever wake from a sleep.
	hasty atomic.Bool
}

// newDisk plugs in what an earlier cut left.
func newDisk(mem *vfs.MemFS, random *rand.Rand) *disk {
	return &disk{MemFS: mem, random: random, cut: make(chan struct{}), failed: make(chan struct{})}
}

// powerOff cuts the power now, once.
func (d *disk) powerOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return
	}
	d.dead = true
	d.left = d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: d.percent, RNG: d.random})
	close(d.cut)
}

// heard does what the outside hears of, unless the machine is dead.
func (d *disk) heard(do func()) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !d.dead {
		do()
	}
	return !d.dead
}

// change does what changes the disk. What a dead machine still does changes nothing that is left.
func (d *disk) change(do func()) {
	n := d.changes.Add(1)
	if n == d.cutAt && !d.applied {
		d.powerOff()
	}
	d.mu.RLock()
	do()
	d.mu.RUnlock()
	if n == d.cutAt && d.applied {
		d.powerOff()
	}
}

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	d.change(func() { f, err = d.MemFS.Create(name, c) })
	return d.file(name, f, err)
}

func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (f vfs.File, err error) {
	d.change(func() { f, err = d.MemFS.OpenReadWrite(name, c, opts...) })
	return d.file(name, f, err)
}

func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	d.change(func() { f, err = d.MemFS.ReuseForWrite(from, to, c) })
	return d.file(to, f, err)
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.MemFS.OpenDir(name)
	return d.file(name, f, err)
}

func (d *disk) Link(from, to string) (err error) {
	d.change(func() { err = d.MemFS.Link(from, to) })
	return err
}

func (d *disk) Rename(from, to string) (err error) {
	d.change(func() { err = d.MemFS.Rename(from, to) })
	return err
}

func (d *disk) Remove(name string) (err error) {
	d.change(func() { err = d.MemFS.Remove(name) })
	return err
}

func (d *disk) RemoveAll(name string) (err error) {
	d.change(func() { err = d.MemFS.RemoveAll(name) })
	return err
}

func (d *disk) MkdirAll(dir string, mode fs.FileMode) (err error) {
	d.change(func() { err = d.MemFS.MkdirAll(dir, mode) })
	return err
}

func (d *disk) Unwrap() vfs.FS { return d.MemFS }

func (d *disk) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{File: f, d: d, slow: strings.HasSuffix(name, ".log")}, nil
}

type file struct {
	vfs.File
	d    *disk
	slow bool
}

func (f *file) Write(p []byte) (n int, err error) {
	f.d.change(func() { n, err = f.File.Write(p) })
	return n, err
}

func (f *file) WriteAt(p []byte, at int64) (n int, err error) {
	f.d.change(func() { n, err = f.File.WriteAt(p, at) })
	return n, err
}

// Sync takes its time where that may be, so that others come to read and write what is not yet synced.
func (f *file) Sync() (err error) {
	if f.slow && f.d.slow > 0 && !f.d.hasty.Load() {
		time.Sleep(f.d.slow)
	}
	if f.d.syncs.Add(1) == f.d.failAt {
		close(f.d.failed)
		return syscall.EIO
	}
	f.d.change(func() { err = f.File.Sync() })
	return err
}

func (f *file) SyncData() error { return f.Sync() }

// blobs is the disk as lib/blob/local wants it.
type blobs struct{ *disk }

func (b blobs) Open(name string) (local.File, error) {
	f, err := b.MemFS.Open(name)
	if err != nil {
		return nil, err
	}
	return named{&file{File: f, d: b.disk}, name}, nil
}

// CreateTemp gives a file whose sync takes its time as well.
func (b blobs) CreateTemp(dir string) (local.File, error) {
	name := path.Join(dir, fmt.Sprint("temporary", b.temporal.Add(1)))
	f, err := b.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	f.(*file).slow = true
	return named{f, name}, nil
}

func (b blobs) Mkdir(dir string) (err error) {
	b.change(func() {
		if _, err = b.MemFS.Stat(dir); err == nil {
			err = fs.ErrExist
		} else if _, err = b.MemFS.Stat(path.Dir(dir)); err == nil {
			err = b.MemFS.MkdirAll(dir, 0o700)
		}
	})
	return err
}

func (b blobs) Stat(name string) (fs.FileInfo, error) { return b.MemFS.Stat(name) }

func (b blobs) ReadDir(dir string, most int) ([]fs.DirEntry, error) {
	names, err := b.List(dir)
	if err != nil {
		return nil, err
	}
	var found []fs.DirEntry
	for _, name := range names {
		info, err := b.MemFS.Stat(path.Join(dir, name))
		if err != nil {
			continue // removed since
		}
		if found = append(found, fs.FileInfoToDirEntry(info)); len(found) == most {
			break
		}
	}
	return found, nil
}

type named struct {
	vfs.File
	name string
}

func (n named) Name() string               { return n.name }
func (n named) Stat() (fs.FileInfo, error) { return n.File.Stat() }
