package mailtarget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// Config says with whom a Sender speaks.
type Config struct {
	Server  Server           // required
	Now     func() time.Time // required: the Date of mails
	Hello   string           // this host's name, told to the server; "" is localhost
	Console string           // URL of the console, which mails about runs link to; "": none does
	RootCAs *x509.CertPool   // who may have signed the server's certificate; nil is the host's own list
}

// Sender sends mails. It is safe for concurrent use; its Send is a target.SendEmail.
type Sender struct {
	server   Server
	now      func() time.Time
	hello    string
	console  string
	tls      *tls.Config
	patience time.Duration
}

// handingOver bounds the whole conversation, whose attempt may have hours. RFC 5321 lets a server take its minutes.
const handingOver = 5 * time.Minute

// New makes a Sender. It connects to nobody.
func New(cfg Config) *Sender {
	if cfg.Hello == "" {
		cfg.Hello = "localhost"
	}
	return &Sender{server: cfg.Server, now: cfg.Now, hello: cfg.Hello, console: strings.TrimRight(cfg.Console, "/"), patience: handingOver,
		tls: &tls.Config{ServerName: cfg.Server.Host, RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12}}
}

// Send hands over the one mail of an attempt. Its result is the mail's Message-ID, as JSON; what the server said goes to the run's log.
func (s *Sender) Send(ctx context.Context, to target.Email, call target.Call) (target.Result, error) {
	m := s.compose(to, call)
	talking, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	t := talk{Sender: s}
	said, err := t.run(talking, to, m)
	if err != nil {
		return target.Result{}, t.verdict(ctx, err)
	}
	if call.Log != nil {
		_, _ = fmt.Fprintf(call.Log, "%s took the mail %s: %s\n", s.server, m.id, strings.ReplaceAll(said, "\n", " "))
	}
	if len(t.refused) > 0 {
		return target.Result{}, target.Reported(target.KindSMTP, "the mail is on its way, but not to everybody: "+strings.Join(t.refused, "; "), true, 0)
	}
	body, err := json.Marshal(map[string]string{"message_id": m.id})
	return target.Result{Body: body, ContentType: "application/json"}, err
}

// talk is one conversation.
type talk struct {
	*Sender
	*smtp.Client
	about   bool     // the server's word is about this mail, and no longer about the worker
	handed  bool     // the end of the mail's text may have arrived
	refused []string // recipients, each with why
}

// run gives what the server said when it took the mail.
func (t *talk) run(ctx context.Context, to target.Email, m message) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", t.server.address())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Whatever waits for the server ends with ctx.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err := t.greet(ctx, conn); err != nil {
		return "", err
	}
	if err := t.logIn(); err != nil {
		return "", err
	}
	t.about = true
	if err := t.address(to); err != nil {
		_, _ = t.Text.Cmd("QUIT")
		return "", err
	}
	if err := t.ask(354, "DATA"); err != nil {
		return "", err
	}
	w := t.Text.DotWriter()
	if _, err := w.Write(m.text); err != nil {
		return "", err
	}
	t.handed = true
	if err := w.Close(); err != nil {
		return "", err
	}
	_, said, err := t.Text.ReadResponse(250)
	if err != nil {
		return "", err
	}
	_, _ = t.Text.Cmd("QUIT") // its answer changes nothing
	return said, nil
}

var errNoTLS = errors.New("the server offers no STARTTLS, and the mail is not sent without TLS (smtps://, or tls=none where nobody can listen)")

// greet begins the conversation, under TLS where that is wanted.
func (t *talk) greet(ctx context.Context, conn net.Conn) (err error) {
	if t.server.Implicit {
		secured := tls.Client(conn, t.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return err
		}
		conn = secured
	}
	if t.Client, err = smtp.NewClient(conn, t.server.Host); err != nil {
		return err
	}
	if err := t.Hello(t.hello); err != nil {
		return err
	}
	if !t.server.StartTLS {
		return nil
	}
	if has, _ := t.Extension("STARTTLS"); !has {
		return errNoTLS
	}
	return t.StartTLS(t.tls)
}

// ask sends a command and reads its answer, which must have the code.
func (t *talk) ask(want int, format string, args ...any) error {
	if _, err := t.Text.Cmd(format, args...); err != nil {
		return err
	}
	_, _, err := t.Text.ReadResponse(want)
	return err
}

var errNoLogin = errors.New("the server offers neither AUTH PLAIN nor AUTH LOGIN, and has a user and a password for one of them")

// logIn shows the password. The server's URL says that this is right: it stands for TLS, or for loopback.
func (t *talk) logIn() (err error) {
	if t.server.User == "" {
		return nil
	}
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	_, offered := t.Extension("AUTH")
	switch ways := strings.Fields(strings.ToUpper(offered)); {
	case slices.Contains(ways, "PLAIN"):
		err = t.ask(235, "AUTH PLAIN %s", encode("\x00"+t.server.User+"\x00"+t.server.Password))
	case slices.Contains(ways, "LOGIN"):
		if err = t.ask(334, "AUTH LOGIN"); err != nil {
			break
		}
		if err = t.ask(334, "%s", encode(t.server.User)); err == nil {
			err = t.ask(235, "%s", encode(t.server.Password))
		}
	default:
		return errNoLogin
	}
	return err
}

// address says from whom and to whom. It fails where nobody is to get the mail now.
func (t *talk) address(to target.Email) error {
	if err := t.ask(250, "MAIL FROM:<%s>", to.From); err != nil {
		return err
	}
	var last *textproto.Error
	for _, address := range to.To {
		err := t.ask(25, "RCPT TO:<%s>", address)
		var answer *textproto.Error
		switch {
		case err == nil:
		case errors.As(err, &answer) && answer.Code >= 500:
			last = &textproto.Error{Code: answer.Code, Msg: address + ": " + answer.Msg}
			t.refused = append(t.refused, words(last))
		case errors.As(err, &answer):
			return &textproto.Error{Code: answer.Code, Msg: address + ": " + answer.Msg}
		default:
			return err
		}
	}
	if len(t.refused) == len(to.To) {
		return last
	}
	return nil
}

// words are an answer of the server for a message.
func words(answer *textproto.Error) string { return fmt.Sprintf("%d %s", answer.Code, answer.Msg) }

// verdict makes of an error what a caller can decide on.
func (t *talk) verdict(ctx context.Context, err error) error {
	var answer *textproto.Error
	switch {
	case errors.As(err, &answer):
		// Of a refusal that is about the worker, such as a wrong password, the job knows nothing: whoever mends it saves the run.
		return target.Reported(target.KindSMTP, fmt.Sprintf("%s answered %s", t.server, words(answer)), t.about && answer.Code >= 500, 0)
	case t.handed && ctx.Err() != nil:
		return ctx.Err()
	case t.handed:
		return fmt.Errorf("whether %s took the mail is not known: %w", t.server, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", target.ErrUnsent, ctx.Err())
	case target.Short(err) != nil:
		return target.Short(err)
	}
	return target.Reported(target.KindConnect, fmt.Sprintf("%s: %v", t.server, err), false, 0)
}
