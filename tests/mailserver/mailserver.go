package mailtarget

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

// mailServer is a small server of SMTP on loopback. What it says by itself is that all is well.
type mailServer struct {
	implicit bool
	offers   []string          // extensions
	answers  map[string]string // by the beginning of what was said: "RCPT TO:<gone@", "." for the end of a mail's text, "" for the greeting
	drop     string            // the connection ends where this is said
	hang     string            // nothing more is answered where this is said
	hung     chan struct{}     // closed then

	address string
	roots   *x509.CertPool
	said    chan string // every line but those of mails, with "TLS " before it where nobody could listen
	mails   chan string // the text of each mail, without its dots
}

// start serves until the test ends.
func (s *mailServer) start(t *testing.T) *mailServer {
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
	s.roots = x509.NewCertPool()
	s.roots.AddCert(signed)
	s.address, s.said, s.mails, s.hung = listener.Addr().String(), make(chan string, 1000), make(chan string, 100), make(chan struct{})
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

// url is where it is, with these words between scheme and address, and behind it.
func (s *mailServer) url(user, options string) string {
	scheme := "smtp"
	if s.implicit {
		scheme = "smtps"
	}
	return scheme + "://" + user + s.address + options
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

func (s *mailServer) serve(conn net.Conn, secure *tls.Config, over <-chan struct{}) {
	c := &conversation{Conn: conn}
	defer func() { _ = c.Close() }()
	encrypt := func() {
		c.Conn, c.secure = tls.Server(c.Conn, secure), true
		c.in = textproto.NewReader(bufio.NewReader(c.Conn))
	}
	c.in = textproto.NewReader(bufio.NewReader(conn))
	if s.implicit {
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
		s.said <- mark + line
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "EHLO":
			lines := append([]string{"mail.example.org"}, s.offers...)
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
			if s.answers["DATA"] != "" {
				continue
			}
			text, err := c.in.ReadDotBytes()
			if err != nil {
				return
			}
			s.mails <- string(text)
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
func (s *mailServer) answer(c *conversation, line, usual string, over <-chan struct{}) bool {
	matches := func(begin string) bool {
		return begin == line || begin != "" && begin != "." && strings.HasPrefix(line, begin)
	}
	if s.drop != "" && matches(s.drop) {
		return false
	}
	if s.hang != "" && matches(s.hang) {
		close(s.hung)
		<-over
		return false
	}
	for begin, text := range s.answers {
		if matches(begin) {
			usual = text
		}
	}
	c.say(usual)
	return true
}

// login knows the user ann with the password p%w d.
func (s *mailServer) login(c *conversation, line string) string {
	decoded := func(text string) string {
		out, _ := base64.StdEncoding.DecodeString(text)
		return string(out)
	}
	got := ""
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

// heard gives what was said up to now.
func (s *mailServer) heard() (lines []string) {
	for {
		select {
		case line := <-s.said:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}
