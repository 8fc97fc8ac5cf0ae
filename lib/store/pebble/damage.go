package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// someRecord is what is called damaged where no file is: its block has the right checksum, and what is in it is no item.
const someRecord = "a record"

// damage is what reads and compactions have met since the store was opened. It is kept, because the next read may need another block:
// that one is well says nothing of the one before.
type damage struct {
	mu  sync.Mutex
	met map[string]bool // by the name of the file
}

// Damaged names what was found damaged since the store was opened, in order: files of the folder, without it.
func (s *Store) Damaged() []string {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	return slices.Sorted(maps.Keys(s.damage.met))
}

// note remembers damage, and tells the log the first time.
func (s *Store) note(file string, cause error) {
	s.damage.mu.Lock()
	known := s.damage.met[file]
	if s.damage.met == nil {
		s.damage.met = map[string]bool{}
	}
	s.damage.met[file] = true
	s.damage.mu.Unlock()
	if !known {
		s.log.Error("the store is damaged: what cannot be read is refused, and the rest still answers", "file", file, "error", firstLine(cause))
	}
}

// damageError is a read that met damage.
type damageError struct {
	file  string
	cause error
}

func (e *damageError) Error() string {
	return fmt.Sprintf("%s: %s: %s", store.ErrDamaged, e.file, firstLine(e.cause))
}

func (e *damageError) Unwrap() []error { return []error{store.ErrDamaged, e.cause} }

// firstLine is what an error of Pebble says, without what it carries along.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// met gives an error of a read as what it is, and remembers it where it is damage.
func (s *Store) met(err error) error {
	file, is := damagedFile(err)
	if !is {
		return err
	}
	s.note(file, err)
	if errors.Is(err, store.ErrDamaged) {
		return err
	}
	return &damageError{file, err}
}

// damagedFile tells whether an error of a read says that what was written is not there any more, and in which file.
func damagedFile(err error) (file string, is bool) {
	var known *damageError
	var path *fs.PathError
	switch info := pebble.ExtractDataCorruptionInfo(err); {
	case err == nil:
		return "", false
	case errors.As(err, &known):
		return known.file, true
	case info != nil:
		return filepath.Base(info.Path), true
	case errors.Is(err, errMalformed), pebble.IsCorruptionError(err):
		return someRecord, true
	case errors.Is(err, syscall.EIO) && errors.As(err, &path):
		return filepath.Base(path.Path), true
	}
	return "", false
}

// refusedBy gives an error of Pebble's own Open. It opens whatever it has written, so what it refuses has changed since, but for what
// the system refuses: rights, or open files.
func refusedBy(err error) error {
	var number syscall.Errno
	switch {
	case err == nil, errors.Is(err, ErrFailed):
		return err
	case errors.As(err, &number) && number != syscall.ENOENT && number != syscall.EIO:
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrDamaged, err)
}

const tableSuffix = ".sst"

func isTable(name string) bool { return strings.HasSuffix(name, tableSuffix) }

// tableFile is a table that is being read. Pebble takes neither a table that has become shorter nor a disk that cannot read for damage.
type tableFile struct {
	vfs.File
	name string
}

func (f *tableFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if n < len(p) && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO)) {
		err = &damageError{f.name, err}
	}
	return n, err
}
