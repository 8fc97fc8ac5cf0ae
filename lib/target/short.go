package target

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// ErrShort says that this host is short of what a call begins with: open files, processes, memory, ports. Nothing was sent and nothing ran, so
// it is no attempt of the job: the call may be made again here in a moment, or elsewhere.
var ErrShort = errors.New("this host is short of what a call begins with")

// ErrNoPort is an ErrShort that speaks of one destination: calls to others, and other kinds of calls, may begin.
var ErrNoPort = fmt.Errorf("%w to one destination", ErrShort)

// lack is what is wanting, and whether it is ErrShort in general or ErrNoPort.
type lack struct {
	kind error
	what string
}

func (l *lack) Error() string { return ErrShort.Error() + ": " + l.what }
func (l *lack) Unwrap() error { return l.kind }

// Short gives an error that wraps ErrShort, in the system's words, where a call could not begin for want of something, and nil where err
// speaks of anything else. The caller knows that nothing was sent.
func Short(err error) error {
	var known *lack
	if errors.As(err, &known) {
		return known
	}
	for _, want := range wants {
		if errors.Is(err, want) {
			return &lack{ErrShort, want.Error()}
		}
	}
	var dial *net.OpError
	if errors.As(err, &dial) && errors.Is(err, noPort) {
		// Over IPv6 it is also what a host says that has no such address of its own.
		if to, ok := dial.Addr.(*net.TCPAddr); ok && to.IP.To4() != nil {
			return &lack{ErrNoPort, "no port is free for another connection to " + to.String()}
		}
	}
	var name *net.DNSError // which keeps but the text
	if errors.As(err, &name) {
		if strings.Contains(name.Err, syscall.EMFILE.Error()) || strings.Contains(name.Err, syscall.ENFILE.Error()) {
			return &lack{ErrShort, name.Err}
		}
		return roomForFiles() // a resolver that could not read its configuration has asked somebody else
	}
	return nil
}
