package crontab

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// MaxBytes is the largest crontab that is read.
const MaxBytes = 1 << 20

// Config says where the crontab comes from.
type Config struct {
	System bool   // lines name a user before the command
	Origin string // of a system crontab: the name of its file, so that equal commands of two files are two jobs
	User   string // who the jobs run as; lines of others in a system crontab are not kept
	Home   string // the user's folder, absolute; "" where it is not known
	Zone   string // IANA name of the zone that the host's cron goes by
	// ZoneGiven says that whoever imports has named Zone: it stands for a CRON_TZ that is no IANA name, whose lines are lost otherwise.
	ZoneGiven bool
	// IsUser reports whether a word is a user of the host and no program of it. nil knows of none but the usual ones, such as root.
	IsUser func(word string) bool
}

// File is what a crontab says.
type File struct {
	takeover.File // jobs and notes are of a line each
	Settings      []Setting
}

// Setting is a line NAME=value. It holds for the jobs below it.
type Setting struct {
	Line        int
	Name, Value string
}

// Labels are on every job that comes from a crontab.
var Labels = map[string]string{"source": "crontab"}

// Parse reads a crontab. It fails only for a text that is none: one that is too large, that is not UTF-8 in whole or has NUL bytes, whose
// lines no line feed ends, or one without a job that looks like something else or in which nothing looks like a schedule.
func Parse(text []byte, cfg Config) (File, error) {
	if len(text) > MaxBytes {
		return File{}, fmt.Errorf("crontab: %d bytes, want at most %d", len(text), MaxBytes)
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\x00\x00\xfe\xff"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return File{}, errors.New(`crontab: it is in UTF-16 or UTF-32, want UTF-8: "iconv -f UTF-16 -t UTF-8 FILE" writes it`)
		}
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return File{}, errors.New("crontab: holds NUL bytes, want text in UTF-8")
	}
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(text, "\r"), '\r') >= 0 {
		return File{}, errors.New(`crontab: carriage returns (CR) alone end its lines, want line feeds (LF): "tr '\r' '\n' < FILE" writes them`)
	}
	if cfg.Zone == "" {
		cfg.Zone = "UTC"
	}
	p := parser{cfg: cfg, zone: cfg.Zone, names: map[string]int{}, env: map[string]string{"SHELL": defaultShell, "PATH": defaultPath}}
	if cfg.Home != "" {
		p.env["HOME"] = cfg.Home
	}
	if cfg.User != "" {
		p.env["LOGNAME"], p.env["USER"] = cfg.User, cfg.User
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, byteOrderMark), "\r") // one stands where files were joined, too
	}
	p.foreign = foreign(lines)
	p.allNameUsers = cfg.allNameUsers(lines)
	for i, line := range lines {
		p.line(i+1, line)
	}
	if len(p.file.Jobs) == 0 && (p.foreign || takeover.Looks(text, takeover.HowCrontab) != "") {
		return File{}, takeover.Unlike(text, takeover.HowCrontab)
	}
	return p.file, nil
}

const byteOrderMark = "\ufeff"

// What cron sets where a crontab does not.
const (
	defaultShell = "/bin/sh"
	defaultPath  = "/usr/bin:/bin"
)

type parser struct {
	cfg   Config
	zone  string            // of the lines to come
	env   map[string]string // of the lines to come
	names map[string]int    // how many jobs want the name
	mail  *mail             // of the lines to come; nil for none
	file  File

	foreign      bool // no line begins as a schedule does, and some are no settings either
	allNameUsers bool // lines have a user before the command, though the crontab is said to be a user's
}

func (p *parser) line(number int, line string) {
	trimmed := strings.TrimLeft(line, blanks)
	switch {
	case strings.Contains(line, "\r"):
		p.file.Note(number, strings.ReplaceAll(line, "\r", " "), true, "not kept: a carriage return (CR) stands in it, want a line feed (LF) where a line ends")
	case strings.TrimRight(trimmed, blanks) == "" || trimmed[0] == '#':
	case !utf8.ValidString(line):
		p.file.Note(number, strings.ToValidUTF8(line, "?"), true, "not kept: it is not UTF-8")
	default:
		if name, value, ok := setting(trimmed); ok {
			p.set(number, trimmed, name, value)
			return
		}
		p.job(number, trimmed)
	}
}

// job reads a line of schedule, user where the crontab is the system's, and command.
func (p *parser) job(number int, line string) {
	lost := func(format string, args ...any) { p.file.Note(number, line, true, "not kept: "+format, args...) }

	if why := anacron(line); why != "" {
		lost("%s", why)
		return
	}
	expression, rest, ok := fields(line)
	if len(expression) > 0 && expression[0] == "@every" {
		lost("%s", interval(expression))
		return
	}
	if !ok {
		lost("want five fields of schedule before the command, or NAME=value")
		return
	}
	cron := strings.Join(expression, " ")
	if why := sixth(expression, rest); why != "" {
		lost("%s", why)
		return
	}
	if cron == "@reboot" {
		hint := ""
		if user, ok := p.namesUser(rest); ok {
			hint = fmt.Sprintf("; %s before the command is a user: import the file with --system", user)
		}
		lost("@reboot names no time; let the host's own start-up run it%s", hint)
		return
	}
	if p.cfg.System {
		var user string
		if user, rest = word(rest); user == "" {
			lost("want a user before the command, as system crontabs have it")
			return
		}
		if !userForm.MatchString(user) {
			lost("want a user before the command, as system crontabs have it, got %s; import a user's own crontab without --system", user)
			return
		}
		if user != p.cfg.User {
			lost("it runs as %s, and Belfry would run it as %s; import it where a worker runs as %s", user, p.cfg.User, user)
			return
		}
	}
	if user, ok := p.namesUser(rest); ok {
		lost("%s before the command is a user, as system crontabs have it: import the file with --system; where %s is a program, write its path", user, user)
		return
	}
	command, input := splitInput(rest)
	if strings.Trim(command, blanks) == "" {
		lost("it has no command")
		return
	}

	kept, notes := takeover.Steps(cron)
	when := &schedule.Spec{Cron: kept, Timezone: p.zone}
	if takeover.NeverFires(*when) {
		when, notes = nil, []string{fmt.Sprintf(takeover.OnDemand, cron)}
	}
	def := job.Definition{
		Description: takeover.Shorten(line, job.MaxDescription),
		Schedule:    when,
		Target:      target.Spec{Exec: p.exec(command, input)},
		Guarantee:   job.AtMostOnce,
		CatchUp:     job.CatchUp{Mode: job.CatchUpNone},
		Retry:       job.Retry{MaxAttempts: 1},
		Timeout:     schedule.Duration(timeout),
		Labels:      maps.Clone(Labels),
	}
	if p.mail != nil {
		def.On.Failed = &job.Callback{Job: p.mail.name}
	}
	name := nameOf(p.cfg, command, input)
	if err := takeover.Check(name, def); err != nil {
		lost("%s", takeover.Reasons(err))
		return
	}
	p.names[name]++
	if n := p.names[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	for _, note := range notes {
		p.file.Note(number, line, false, "%s", note)
	}
	p.post()
	p.file.Jobs = append(p.file.Jobs, takeover.Job{Line: number, Name: name, Def: def})
}

// timeout is the longest that Belfry gives: cron has none.
const timeout = 24 * time.Hour

// exec gives the process that cron would start.
func (p *parser) exec(command, input string) *target.Exec {
	e := &target.Exec{Argv: []string{p.env["SHELL"], "-c", command}, Env: target.Texts(p.env)}
	if input != "" {
		// A payload is JSON, and this is any text; so a shell hands it on, as an argument, which nothing can take apart.
		e.Argv = []string{defaultShell, "-c", `printf '%s' "$1" | exec "$2" -c "$3"`, "crontab", input, p.env["SHELL"], command}
	}
	if home := p.env["HOME"]; filepath.IsAbs(home) {
		e.Dir = home
	}
	return e
}
