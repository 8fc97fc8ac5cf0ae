//go:build unix

package target

import (
	"fmt"
	"os"
	"syscall"
)

// wants are what the system says where it is short of something.
var wants = []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS}

const noPort = syscall.EADDRNOTAVAIL

// spareFiles is how many files a process may still open when no more calls begin: the store, the log and the API need some at any moment.
// Where few are allowed at all it is a quarter of them.
const spareFiles = 32

// roomFor tells whether a file that was just opened leaves enough others to this process; if not, the error wraps ErrShort. The system gives
// the lowest number that is free, so the number tells how many there are.
func roomFor(file syscall.RawConn) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil //nolint:nilerr // then it is not known, and what cannot be opened says so
	}
	most := uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
	var full bool
	err := file.Control(func(number uintptr) { full = uint64(number) >= most-min(spareFiles, most/4) })
	if err == nil && full {
		return &lack{ErrShort, fmt.Sprintf("too many open files: this process may have %d at a time (ulimit -n), and keeps the last of them for itself", most)}
	}
	return err
}

// roomForFiles is roomFor the next file. Its error is one of Short.
func roomForFiles() error {
	read, write, err := os.Pipe()
	if err != nil {
		return Short(err)
	}
	defer func() {
		_ = read.Close()
		_ = write.Close()
	}()
	conn, err := write.SyscallConn()
	if err == nil {
		err = roomFor(conn)
	}
	return Short(err)
}
