package crontab

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// settingForm is NAME=value with blanks around the sign and quotes around both, as cron allows. A line of schedule never
// has it: its first word holds no sign.
var settingForm = regexp.MustCompile(`^("[^"=]*"|'[^'=]*'|[^\s"'=]+)[ \t]*=[ \t]*(.*)$`)

// setting takes a line apart; ok is false for one that is none.
func setting(line string) (name, value string, ok bool) {
	parts := settingForm.FindStringSubmatch(line)
	if parts == nil {
		return "", "", false
	}
	return unquote(parts[1]), unquote(strings.TrimRight(parts[2], blanks)), true
}

// unquote takes off one pair of equal quotes around the whole; others are part of the text.
func unquote(text string) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// ownEnv begins the names that Belfry sets for every process.
const ownEnv = "BELFRY_"

// set keeps a setting for the lines below, and notes what it cannot mean here.
func (p *parser) set(number int, line, name, value string) {
	note := func(why string) { p.file.Note(number, line, false, "%s", why) }
	switch {
	case !envName.MatchString(name):
		note("not kept: names of settings have letters, digits and _, and do not begin with a digit")
		return
	case strings.HasPrefix(name, ownEnv):
		note("not kept: Belfry sets what begins with " + ownEnv)
		return
	case name == "LOGNAME" || name == "USER":
		note("not kept: cron does not let a crontab change it either")
		return
	case name == "MAILTO":
		p.mailTo(number, line, value)
	case name == "MAILFROM":
		note("mails come from the address that the worker's operator chose (--smtp-from)")
	case name == "RANDOM_DELAY":
		note("Belfry does not delay these jobs; give a job a jitter instead")
	case name == "SHELL" && !filepath.IsAbs(value):
		note("not kept: want an absolute path")
		return
	case name == "HOME" && !filepath.IsAbs(value):
		note("not kept: want an absolute path")
		return
	case name == "START_HOURS_RANGE":
		note("it is anacron's: Belfry runs jobs at their times, and at no other hours")
	case name == "TZ":
		if zone, _ := ZoneName(value); zone != p.zone {
			note("the commands see it, and the schedule goes by " + p.zone + ", as cron has it; CRON_TZ, or --timezone, names the schedule's zone")
		}
	case name == "CRON_TZ":
		p.zoneOf(value, note)
	}
	p.env[name] = value
	p.file.Settings = append(p.file.Settings, Setting{Line: number, Name: name, Value: value})
}

// zoneOf sets the zone of the lines below; one that has no IANA name loses them, unless whoever imports has named one.
func (p *parser) zoneOf(value string, note func(string)) {
	zone, ok := ZoneName(value)
	switch {
	case value == "":
		p.zone = p.cfg.Zone
	case ok:
		p.zone = zone
	case p.cfg.ZoneGiven:
		p.zone = p.cfg.Zone
		note("no IANA name of a time zone; the lines below are taken for " + p.cfg.Zone + ", as --timezone has it")
	default:
		p.zone = value
		note("no IANA name of a time zone, such as Europe/Berlin; the lines below are not kept: write one, or give --timezone")
	}
}

// ZoneName gives the IANA name that a value of TZ or CRON_TZ stands for, which may be a file of the host's zones. ok is false for what has
// none, such as "CET-1CEST,M3.5.0,M10.5.0/3".
func ZoneName(value string) (name string, ok bool) {
	name = strings.TrimPrefix(value, ":")
	if _, after, found := strings.Cut(name, "/zoneinfo/"); found && filepath.IsAbs(name) {
		name = after
	}
	name = strings.TrimPrefix(name, "posix/")
	_, err := schedule.LoadZone(name)
	return name, err == nil
}
