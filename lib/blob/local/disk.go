package local

import (
	"io"
	"io/fs"
	"os"
)

// Disk is the file system that a folder lies on. Its errors are told apart as those of package os are: fs.ErrExist, fs.ErrNotExist.
type Disk interface {
	Open(name string) (File, error)      // a file to be read, or a directory, to sync its entries
	CreateTemp(dir string) (File, error) // a new file to be written, under a name of its own
	Link(from, to string) error          // fs.ErrExist where something stands, in one step
	Rename(from, to string) error
	Remove(name string) error // a file, or an empty directory
	RemoveAll(dir string) error
	Mkdir(dir string) error // below one that is there
	Stat(name string) (fs.FileInfo, error)
	ReadDir(dir string, most int) ([]fs.DirEntry, error) // in any order; most 0: all
}

// File is an open file of a Disk.
type File interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Name() string // as it was opened, or with CreateTemp's folder before it
	Stat() (fs.FileInfo, error)
	Sync() error // what returns nil outlives a power cut: the bytes of a file, the entries of a directory
}

// Host is the file system of this machine.
type Host struct{}

// Each is what package os does. Only the owner may look into what is made.

func (Host) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err // and no interface that holds a nil file
	}
	return f, nil
}

func (Host) CreateTemp(dir string) (File, error) {
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (Host) Link(from, to string) error            { return os.Link(from, to) }
func (Host) Rename(from, to string) error          { return os.Rename(from, to) }
func (Host) Remove(name string) error              { return os.Remove(name) }
func (Host) RemoveAll(dir string) error            { return os.RemoveAll(dir) }
func (Host) Mkdir(dir string) error                { return os.Mkdir(dir, 0o700) }
func (Host) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

func (Host) ReadDir(dir string, most int) ([]fs.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.ReadDir(most)
	if err == io.EOF { //nolint:errorlint // os gives it bare: there is nothing in it
		err = nil
	}
	return found, err
}
