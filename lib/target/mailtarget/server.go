package mailtarget

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Server is where mails are handed over, and how.
type Server struct {
	Host     string // name or address
	Port     string
	Implicit bool   // TLS from the first byte on
	StartTLS bool   // TLS after a few words; else, without Implicit, none
	User     string // "": nobody logs in
	Password string
}

const wantServer = "want smtp://USER:PASSWORD@HOST:587, smtps://USER:PASSWORD@HOST:465 or, without TLS, smtp://HOST:25?tls=none"

// ParseServer reads the URL of a mail server. Its errors do not show the URL, for the password in it.
func ParseServer(text string) (Server, error) {
	wrong := func(why string) (Server, error) {
		return Server{}, errors.New("the mail server's URL: " + why + "; " + wantServer)
	}
	at, err := url.Parse(text)
	switch {
	case err != nil:
		return wrong("it cannot be read; a password's signs such as / # and % stand as %2F, %23 and %25")
	case at.Scheme != "smtp" && at.Scheme != "smtps":
		return wrong("it does not begin with smtp:// or smtps://")
	case at.Opaque != "" || at.Hostname() == "":
		return wrong("it names no host")
	case at.Path != "" && at.Path != "/" || at.Fragment != "":
		return wrong("something follows the host that has no meaning there")
	}
	s := Server{Host: at.Hostname(), Port: at.Port(), Implicit: at.Scheme == "smtps"}
	if s.Port == "" {
		s.Port = map[bool]string{false: "587", true: "465"}[s.Implicit]
	} else if n, err := strconv.Atoi(s.Port); err != nil || n < 1 || n > 65535 {
		return wrong("the port is none from 1 to 65535")
	}
	if at.User != nil {
		s.User = at.User.Username()
		s.Password, _ = at.User.Password()
		if s.User == "" || s.Password == "" {
			return wrong("a user and a password go together")
		}
		if strings.ContainsAny(s.User+s.Password, "\x00\r\n") {
			return wrong("user or password hold a line's end or a NUL")
		}
	}
	options := at.Query()
	choice := options.Get("tls")
	delete(options, "tls")
	switch {
	case len(options) > 0:
		return wrong("it has another option than tls")
	case s.Implicit && choice != "":
		return wrong("smtps has no option tls")
	case choice != "" && choice != "none" && choice != "starttls":
		return wrong("tls is none or starttls")
	case s.Implicit:
	case choice == "none" && s.User != "" && !s.loopback():
		return wrong("a password goes to another host under TLS alone: leave out tls=none")
	default:
		s.StartTLS = choice == "starttls" || choice == "" && !s.loopback()
	}
	return s, nil
}

// loopback tells whether nobody between here and there can listen.
func (s Server) loopback() bool {
	address, err := netip.ParseAddr(s.Host)
	return err == nil && address.IsLoopback() || s.Host == "localhost"
}

func (s Server) address() string { return net.JoinHostPort(s.Host, s.Port) }

// String names the server without its password.
func (s Server) String() string {
	scheme := "smtp"
	if s.Implicit {
		scheme = "smtps"
	}
	return scheme + "://" + s.address()
}
