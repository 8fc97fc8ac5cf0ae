package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// mailServer speaks as much SMTP as a client needs to send a mail. It refuses each recipient twice for the moment.
type mailServer struct {
	listener net.Listener
	stdout   io.Writer
	serving  sync.WaitGroup

	mu      sync.Mutex
	domains map[string]bool
	refused map[string]int
}

func startMailServer(ctx context.Context, stdout io.Writer) (*mailServer, error) {
	var how net.ListenConfig
	listener, err := how.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &mailServer{listener: listener, stdout: stdout, domains: map[string]bool{"example.org": true}, refused: map[string]int{}}
	s.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			s.serving.Go(func() { s.talk(conn) })
		}
	})
	return s, nil
}

func (s *mailServer) address() string { return s.listener.Addr().String() }

func (s *mailServer) close() error {
	err := s.listener.Close()
	s.serving.Wait()
	return err
}

func (s *mailServer) allow(domain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.domains[domain] = true
}

func (s *mailServer) talk(conn net.Conn) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return
	}
	text := textproto.NewConn(conn)
	say := func(format string, args ...any) { _ = text.PrintfLine(format, args...) } // a client that is gone hears nothing
	say("220 mail.example.org")
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); verb {
		case "RCPT":
			say("%s", s.recipient(line))
		case "DATA":
			say("354 go on")
			if _, err := text.ReadDotBytes(); err != nil {
				return
			}
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default: // EHLO, MAIL
			say("250 fine")
		}
	}
}

// recipient answers to "RCPT TO:<ann@example.org>".
func (s *mailServer) recipient(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	to, _, _ := strings.Cut(rest, ">")
	_, domain, _ := strings.Cut(to, "@")
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := "250 fine"
	switch {
	case !s.domains[domain]:
		answer = "550 nobody of that name here"
	case s.refused[to] < 2:
		s.refused[to]++
		answer = "451 too busy, try again later"
	}
	fmt.Fprintf(s.stdout, "mail server: %s: %s\n", to, answer)
	return answer
}
