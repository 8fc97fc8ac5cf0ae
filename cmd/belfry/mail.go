package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/target/mailtarget"
)

// mailVariable may hold the mail server's URL itself. There is no flag for it: it has a password in it, and others on this host see command lines.
const mailVariable = "BELFRY_SMTP_URL"

// mailFlags say how email jobs send.
type mailFlags struct {
	file    string // with the mail server's URL; "": none, or mailVariable
	from    string
	to      []string
	console string

	server *mailtarget.Server // nil: nobody sends
	may    []target.MailPattern
}

// flags are of whatever calls targets.
func (m *mailFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.file, "smtp-url-file", "", "`FILE` with the URL of the server that email jobs send by, such as smtps://USER:PASSWORD@HOST; "+mailVariable+" may hold the URL too")
	f.StringVar(&m.from, "smtp-from", "", "`ADDRESS` that mails come from, such as belfry@example.org; jobs may name another of its domain")
	f.StringSliceVar(&m.to, "smtp-to", nil, "`PATTERN` of the addresses that email jobs may send to, such as *@example.org; any by default; more than once or with commas for several")
	f.StringVar(&m.console, "console-url", "", "`URL` of the console for those who get mails, such as https://belfry.example.org/console: mails about runs link to it")
}

// check reads what the flags name.
func (m *mailFlags) check() (err error) {
	text := os.Getenv(mailVariable)
	where := mailVariable
	switch {
	case m.file != "" && text != "":
		return misused("--smtp-url-file and %s exclude each other", mailVariable)
	case m.file != "":
		read, err := readUpTo(m.file, 4<<10)
		if err != nil {
			return fmt.Errorf("--smtp-url-file: %w", err)
		}
		text, where = strings.TrimSpace(string(read)), "--smtp-url-file "+m.file
	}
	if m.console != "" {
		if at, err := url.Parse(m.console); err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
			return misused("--console-url %s: want a URL such as https://belfry.example.org/console", m.console)
		}
	}
	if m.may, err = target.ParseMailPatterns(strings.Join(m.to, ",")); err != nil {
		return misused("--smtp-to: %w", err)
	}
	if text == "" {
		if m.file != "" {
			return misused("%s: the file is empty; want the URL of a mail server", where)
		}
		if m.from != "" || len(m.to) > 0 {
			return misused("--smtp-from and --smtp-to are of a mail server: want its URL in --smtp-url-file or %s", mailVariable)
		}
		return nil
	}
	server, err := mailtarget.ParseServer(text)
	switch {
	case err != nil:
		return exiting(exitUsage, fmt.Errorf("%s: %w", where, err))
	case m.from == "":
		return misused("%s: want --smtp-from ADDRESS with it", where)
	}
	if target.ValidAddress("", m.from) != nil {
		return misused("--smtp-from %s: want an address such as belfry@example.org, without a name around it", m.from)
	}
	m.server = &server
	return nil
}

// add puts what sends mails into a worker's targets.
func (m *mailFlags) add(cfg *target.Config, log *slog.Logger) {
	if m.server == nil {
		return
	}
	if m.file != "" {
		logExposed(log, "the password of the mail server", exposed(m.file))
	}
	host, err := os.Hostname()
	if err != nil || target.ValidAddress("", "belfry@"+host) != nil {
		host = "" // the server is told localhost then
	}
	cfg.Email = mailtarget.New(mailtarget.Config{Server: *m.server, Now: time.Now, Hello: host, Console: m.console}).Send
	cfg.MailFrom, cfg.MailTo = m.from, m.may
}
