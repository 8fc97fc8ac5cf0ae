package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fail stops the engine for good. After a failed write or sync nobody knows what the disk holds (a second fsync may say yes
// to what the first one lost), so nothing may be acknowledged any more, and nothing read: it could be what was lost.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		s.log.Error("the store stops: its disk failed", "error", err)
		close(s.failed)
	})
}

// broken is the failure, nil while all is well.
func (s *Store) broken() error {
	select {
	case <-s.failed:
		return s.failure
	default:
		return nil
	}
}

// unlessFailed does something that changes the disk. When the disk fails meanwhile, what Pebble has under way hangs, and the
// folder stays locked until the process ends.
func (s *Store) unlessFailed(do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		return err
	case <-s.failed:
		return s.failure
	}
}

// pebbleLog keeps Pebble's chatter out of the program's log. What Pebble calls fatal would end the process by default;
// here it stops the engine.
type pebbleLog struct{ s *Store }

func (l pebbleLog) Infof(string, ...any) {}

func (l pebbleLog) Errorf(form string, args ...any) {
	l.s.log.Error("the store's engine: " + fmt.Sprintf(form, args...))
}

func (l pebbleLog) Fatalf(form string, args ...any) { l.s.fail(fmt.Errorf(form, args...)) }

// guard stands between Pebble and the file system. Pebble meets a failed write with a panic, at places where it would take
// the whole process along, or tries again for ever; so it is not told. The first failure stops the engine, and from then on
// whoever wants to change a file waits for ever: the disk stays as it was at that moment, as after a power cut, and what is
// left are some goroutines of a process that should end.
type guard struct {
	vfs.FS
	s *Store
}

// How often, and how far apart, a change is tried again for which this process has no file left to open: for a minute in all.
const (
	fileTries = 600
	filePause = 100 * time.Millisecond
)

// change does what changes the disk. It returns only when that has succeeded. Where no file could be opened the disk has not changed, and is
// no worse: it waits for one that others close.
func (g *guard) change(do func() error) {
	if g.s.broken() != nil {
		select {}
	}
	err := do()
	for tries := 0; tries < fileTries && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)); tries++ {
		if tries == 0 {
			g.s.log.Warn("the store waits for a file that it can open (ulimit -n)", "error", err)
		}
		<-time.After(filePause)
		err = do()
	}
	if err != nil {
		g.s.fail(err)
		select {}
	}
}

// open does what gives a file that can be written.
func (g *guard) open(do func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	g.change(func() (err error) {
		f, err = do()
		return err
	})
	return &guardedFile{File: f, g: g}, nil
}

// Create makes what came before a marker durable first. A marker names a manifest that Pebble has written and synced, but not its entry
// in the folder: a power cut between the marker's creation and the sync of both could leave the one and take the other, and the
// store would not open any more.
func (g *guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(g.FS.PathBase(name), "marker.") {
		g.change(func() error { return syncDir(g.FS, g.FS.PathDir(name)) })
	}
	if isManifest(g.FS, name) {
		var f vfs.File
		g.change(func() (err error) {
			f, err = g.FS.Create(name, c)
			return err
		})
		return &manifestFile{guardedFile: guardedFile{File: f, g: g}, path: name}, nil
	}
	f, err := g.open(func() (vfs.File, error) { return g.FS.Create(name, c) })
	return g.counted(name, f), err
}

// counted is the file, whose writes count where it is a log.
func (g *guard) counted(name string, f vfs.File) vfs.File {
	if isLog(g.FS, name) {
		return &logFile{File: f, count: &g.s.disk}
	}
	return f
}

func (g *guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.open(func() (vfs.File, error) { return g.FS.OpenReadWrite(name, c, opts...) })
}

func (g *guard) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.open(func() (vfs.File, error) { return g.FS.ReuseForWrite(from, to, c) })
	return g.counted(to, f), err
}

// Open gives a file to be read.
func (g *guard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, opts...)
	if err != nil || !isTable(name) {
		return f, err
	}
	return &tableFile{File: f, name: g.FS.PathBase(name)}, nil
}

// OpenDir is for a sync of the folder.
func (g *guard) OpenDir(name string) (vfs.File, error) {
	return g.open(func() (vfs.File, error) { return g.FS.OpenDir(name) })
}

func (g *guard) Link(from, to string) error {
	g.change(func() error { return g.FS.Link(from, to) })
	return nil
}

func (g *guard) Rename(from, to string) error {
	g.change(func() error { return g.FS.Rename(from, to) })
	return nil
}

func (g *guard) MkdirAll(dir string, mode os.FileMode) error {
	g.change(func() error { return g.FS.MkdirAll(dir, mode) })
	return nil
}

// Remove must not happen after a failure, since what it removes may be needed again. Its own failure harms nothing.
func (g *guard) Remove(name string) (err error) {
	g.change(func() error {
		if err = g.FS.Remove(name); err == nil && isManifest(g.FS, name) {
			err = g.FS.Remove(vouchPath(g.FS, name))
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		return nil
	})
	return err
}

func (g *guard) RemoveAll(name string) (err error) {
	g.change(func() error { err = g.FS.RemoveAll(name); return nil })
	return err
}

func (g *guard) Unwrap() vfs.FS { return g.FS }

type guardedFile struct {
	vfs.File
	g *guard
}

func (f *guardedFile) Write(p []byte) (n int, err error) {
	f.g.change(func() error { n, err = f.File.Write(p); return err })
	return n, nil
}

func (f *guardedFile) WriteAt(p []byte, at int64) (n int, err error) {
	f.g.change(func() error { n, err = f.File.WriteAt(p, at); return err })
	return n, nil
}

func (f *guardedFile) Sync() error {
	f.g.change(f.File.Sync)
	return nil
}

func (f *guardedFile) SyncData() error {
	f.g.change(f.File.SyncData)
	return nil
}

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	f.g.change(func() error { full, err = f.File.SyncTo(length); return err })
	return full, nil
}
