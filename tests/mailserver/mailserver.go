// Package mailserver is a small mail server for tests: it speaks SMTP on loopback, keeps what it is given, and fails where it is told to.
package mailserver

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// Server is one that takes everything unless it is told otherwise. Its fields are set before Start.
type Server struct {
	Implicit bool              // TLS from the first byte on
	Offers   []string          // extensions
	Answers  map[string]string // in place of the usual ones, by the beginning of what was said: "RCPT TO:<gone@", "." for the end of a mail's text, "" for the greeting
	Drop     string            // the connection ends where this is said
	Hang     string            // nothing more is answered where this is said
	Hung     chan struct{}     // closed then

	Address string         // HOST:PORT
	Roots   *x509.CertPool // who has signed its certificate
	Said    chan string    // every line but those of mails, with "TLS " before it where nobody could listen
	Mails   chan string    // the text of each mail, without the dots that SMTP adds
}

// Start serves until the test ends.
func (s *Server) Start(t *testing.T) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true}
	made, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	s.Roots = x509.NewCertPool()
	s.Roots.AddCert(signed)
	s.Address, s.Said, s.Mails, s.Hung = listener.Addr().String(), make(chan string, 1000), make(chan string, 100), make(chan struct{})
	secure := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.serve(conn, secure, over)
		}
	}()
	t.Cleanup(func() { close(over); _ = listener.Close(); <-ended })
	return s
}

// URL is where it is, with these words between scheme and address, and behind it.
func (s *Server) URL(user, options string) string {
	scheme := "smtp"
	if s.Implicit {
		scheme = "smtps"
	}
	return scheme + "://" + user + s.Address + options
}

// conversation is one connection.
type conversation struct {
	net.Conn
	in     *textproto.Reader
	secure bool
}

func (c *conversation) say(text string) {
	fmt.Fprintf(c.Conn, "%s\r\n", text)
}

func (s *Server) serve(conn net.Conn, secure *tls.Config, over <-chan struct{}) {
	c := &conversation{Conn: conn}
	defer func() { _ = c.Close() }()
	encrypt := func() {
		c.Conn, c.secure = tls.Server(c.Conn, secure), true
		c.in = textproto.NewReader(bufio.NewReader(c.Conn))
	}
	c.in = textproto.NewReader(bufio.NewReader(conn))
	if s.Implicit {
		encrypt()
	}
	if !s.answer(c, "", "220 mail.example.org ESMTP", over) {
		return
	}
	for {
		line, err := c.in.ReadLine()
		if err != nil {
			return
		}
		mark := ""
		if c.secure {
			mark = "TLS "
		}
		s.Said <- mark + line
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "EHLO":
			lines := append([]string{"mail.example.org"}, s.Offers...)
			for i, offer := range lines {
				lines[i] = "250-" + offer
			}
			lines[len(lines)-1] = "250 " + lines[len(lines)-1][4:]
			if !s.answer(c, line, strings.Join(lines, "\r\n"), over) {
				return
			}
		case "STARTTLS":
			if !s.answer(c, line, "220 go ahead", over) {
				return
			}
			encrypt()
		case "AUTH":
			if !s.answer(c, line, s.login(c, line), over) {
				return
			}
		case "DATA":
			if !s.answer(c, line, "354 go ahead", over) {
				return
			}
			if s.Answers["DATA"] != "" {
				continue
			}
			text, err := c.in.ReadDotBytes()
			if err != nil {
				return
			}
			s.Mails <- string(text)
			if !s.answer(c, ".", "250 2.0.0 queued as 4XYZ", over) {
				return
			}
		case "QUIT":
			c.say("221 bye")
			return
		default:
			if !s.answer(c, line, "250 fine", over) {
				return
			}
		}
	}
}

// answer says what was set for a line, else usual. It tells whether the conversation goes on.
func (s *Server) answer(c *conversation, line, usual string, over <-chan struct{}) bool {
	matches := func(begin string) bool {
		return begin == line || begin != "" && begin != "." && strings.HasPrefix(line, begin)
	}
	if s.Drop != "" && matches(s.Drop) {
		return false
	}
	if s.Hang != "" && matches(s.Hang) {
		close(s.Hung)
		<-over
		return false
	}
	for begin, text := range s.Answers {
		if matches(begin) {
			usual = text
		}
	}
	c.say(usual)
	return true
}

// login knows the user ann with the password p%w d.
func (s *Server) login(c *conversation, line string) string {
	decoded := func(text string) string {
		out, _ := base64.StdEncoding.DecodeString(text)
		return string(out)
	}
	var got string
	if text, is := strings.CutPrefix(line, "AUTH PLAIN "); is {
		got = decoded(text)
	} else {
		c.say("334 VXNlcm5hbWU6")
		user, _ := c.in.ReadLine()
		c.say("334 UGFzc3dvcmQ6")
		password, _ := c.in.ReadLine()
		got = "\x00" + decoded(user) + "\x00" + decoded(password)
	}
	if got != "\x00ann\x00p%w d" {
		return "535 5.7.8 no"
	}
	return "235 welcome"
}

// Heard gives what was said up to now.
func (s *Server) Heard() (lines []string) {
	for {
		select {
		case line := <-s.Said:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}
