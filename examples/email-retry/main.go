// Email-retry sends two mails through a mail server that is not well. The server, which is in this program, refuses each mail
// twice before it takes it, and knows only addresses of example.org.
//
//	go run ./examples/email-retry
//
// The first mail arrives with its third attempt. The second one can never arrive: the server says so for good, and the run
// becomes a dead letter, which is shown, mended and run again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/smtp"
	"net/textproto"
	"os"
	"os/signal"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

// Mail is the payload of a run.
type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "memory:", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "email-retry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, at string, stdout io.Writer) (err error) {
	server, err := startMailServer(ctx, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()

	b, err := belfry.Open(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop(context.WithoutCancel(ctx))) }()
	belfry.Handle(b, "email", func(_ context.Context, job *belfry.Job[Mail]) error {
		return send(server.address(), job.Payload, job.Run)
	}, belfry.MaxAttempts(5), belfry.Backoff(100*time.Millisecond, time.Second), belfry.Timeout(10*time.Second))
	if err := b.Start(ctx); err != nil {
		return err
	}

	for _, mail := range []Mail{{"ann@example.org", "Welcome"}, {"bob@example.net", "Welcome"}} {
		r, err := belfry.Enqueue(ctx, b, "email", mail)
		if err != nil {
			return err
		}
		if r, err = b.Wait(ctx, r.ID); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: %s after attempt %d\n", mail.To, r.State, r.Attempt)
	}

	for dead, err := range b.Runs(ctx, "email", belfry.Dead, belfry.Failed) {
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "dead letter %s: %s\n", dead.State, dead.Error)
		server.allow("example.net") // somebody mends what was wrong
		if err := b.Retry(ctx, dead.ID); err != nil {
			return err
		}
		if dead, err = b.Wait(ctx, dead.ID); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "retried: %s after attempt %d\n", dead.State, dead.Attempt)
	}
	return nil
}

// send gives a mail to the server. An answer of 4xx speaks of the moment, and is tried again; one of 5xx is for good.
func send(server string, mail Mail, run string) error {
	// The same Message-ID on every attempt: a server that took the mail, and whose answer was lost, can tell.
	text := fmt.Sprintf("To: %s\r\nMessage-ID: <%s@example.org>\r\n\r\n%s\r\n", mail.To, run, mail.Text)
	err := smtp.SendMail(server, nil, "shop@example.org", []string{mail.To}, []byte(text))
	var answer *textproto.Error
	if errors.As(err, &answer) && answer.Code >= 500 {
		return belfry.Permanent(err)
	}
	return err
}
