//go:build unix

package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestShortTellsWantFromWhatIsWrong(t *testing.T) {
	dial := func(ip string, errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 80}, Err: os.NewSyscallError("connect", errno)}
	}
	for name, c := range map[string]struct {
		err  error
		says string // "" where the host is short of nothing
	}{
		"no file for a pipe":       {os.NewSyscallError("pipe2", syscall.EMFILE), "too many open files"},
		"the host's files":         {os.NewSyscallError("pipe2", syscall.ENFILE), "too many open files in system"},
		"no process":               {&os.PathError{Op: "fork/exec", Path: "/bin/true", Err: syscall.EAGAIN}, "resource temporarily unavailable"},
		"no memory":                {fmt.Errorf("start: %w", &os.PathError{Op: "fork/exec", Path: "/bin/true", Err: syscall.ENOMEM}), "cannot allocate memory"},
		"no socket":                {&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, "too many open files"},
		"no port":                  {dial("192.0.2.1", syscall.EADDRNOTAVAIL), "no port is free for another connection to 192.0.2.1:80"},
		"no IPv6":                  {dial("2001:db8::1", syscall.EADDRNOTAVAIL), ""},
		"a name, without files":    {&net.DNSError{Err: "dial udp: socket: too many open files", Name: "x"}, "too many open files"},
		"a name that is not there": {&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, ""},
		"no listener":              {dial("192.0.2.1", syscall.ECONNREFUSED), ""},
		"no program":               {&os.PathError{Op: "fork/exec", Path: "/x", Err: syscall.ENOENT}, ""},
		"a busy program":           {&os.PathError{Op: "fork/exec", Path: "/x", Err: syscall.ETXTBSY}, ""},
		"time":                     {os.ErrDeadlineExceeded, ""},
		"cancelled":                {context.Canceled, ""},
		"nothing":                  {nil, ""},
	} {
		err := Short(c.err)
		if (err != nil) != (c.says != "") || err != nil && (!errors.Is(err, ErrShort) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
		if errors.Is(err, ErrNoPort) != (name == "no port") {
			t.Errorf("%s: %v is of one destination: %t", name, err, errors.Is(err, ErrNoPort))
		}
		if again := Short(err); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%s: said again it is %v", name, again)
		}
	}
}

// What is short before anything was done is no verdict on the job.
func TestWhatIsShortIsNoFailure(t *testing.T) {
	full := os.NewSyscallError("open", syscall.EMFILE)
	secret := func(c *Config) {
		c.Secrets = func(context.Context, string, string) (string, error) { return "", full }
	}
	withSecret := shell("true")
	withSecret.Exec.Env = map[string]Value{"KEY": {Secret: "key"}}
	_, err := newSet(t, secret).Call(t.Context(), withSecret, testCall())
	wantShort(t, err)

	s := awsSet(t, func(context.Context, AWS, Call) (Result, error) { return Result{}, Short(full) }, reportARN)
	_, err = s.Call(t.Context(), Spec{AWS: &AWS{ARN: reportARN}}, testCall())
	wantShort(t, err)

	s = newSet(t, func(c *Config) {
		c.Addresses.AllowLoopback, c.Addresses.Own = false, func() ([]netip.Addr, error) { return nil, full }
	})
	_, err = s.Call(t.Context(), Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1"}}, testCall())
	wantShort(t, err)
}

func wantShort(t *testing.T, err error) {
	t.Helper()
	var f *Failure
	if !errors.Is(err, ErrShort) || errors.As(err, &f) {
		t.Errorf("got %v, want ErrShort and no verdict on the job", err)
	}
}

// The last files that a process may open are its own.
func TestRoomIsLeftForOthers(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	most := uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
	for number, full := range map[uint64]bool{3: false, most - spareFiles - 1: false, most - spareFiles: true, most - 1: true} {
		if err := roomFor(numbered(number)); (err != nil) != full {
			t.Errorf("file %d of %d: %v, want it refused: %t", number, most, err, full)
		}
	}
	if err := roomForFiles(); err != nil {
		t.Error(err)
	}
}

// numbered is a file of a number.
type numbered uint64

func (n numbered) Control(f func(uintptr)) error  { f(uintptr(n)); return nil }
func (n numbered) Read(func(uintptr) bool) error  { return nil }
func (n numbered) Write(func(uintptr) bool) error { return nil }
