package crontab

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

// fields takes the schedule off a line: five fields, or a macro, of which @every has an interval. ok is false for a line that has fewer.
func fields(line string) (expression []string, rest string, ok bool) {
	// A minus before the minute tells some crons not to log the start.
	count, rest := 5, strings.TrimPrefix(line, "-")
	switch first, _ := word(rest); {
	case first == "@every":
		count = 2
	case strings.HasPrefix(first, "@"):
		count = 1
	}
	for range count {
		var field string
		if field, rest = word(rest); field != "" {
			expression = append(expression, field)
		}
	}
	return expression, rest, len(expression) == count
}

var (
	anacronForm = regexp.MustCompile(`^([0-9]+|@[a-z]+)[ \t]+[0-9]+[ \t]+([^ \t]+)[ \t]+(.+)$`)
	anacronName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{2,}$`)
)

// anacronPeriods are what cron has for periods in days.
var anacronPeriods = map[string]string{"1": "@daily", "7": "@weekly", "30": "@monthly", "31": "@monthly", "365": "@yearly"}

// anacron says of a line of an anacrontab what it is and what to write: period, delay in minutes, name, command. "" is for a line of a
// crontab, whose third field begins with a number or a star.
func anacron(line string) string {
	parts := anacronForm.FindStringSubmatch(line)
	if parts == nil {
		return ""
	}
	period, name, command := parts[1], parts[2], parts[3]
	when := period
	if !strings.HasPrefix(period, "@") {
		if !anacronName.MatchString(name) {
			return ""
		}
		when = anacronPeriods[period]
	}
	write := fmt.Sprintf("Write it for cron, as %q, or with five fields", when+" "+command)
	if when == "" {
		write = fmt.Sprintf("Cron has no period of %[1]s days: write a job whose schedule is every %[1]sd", period)
	}
	return fmt.Sprintf("it is a line of an anacrontab: a period, a delay in minutes, the name %s, the command. %s; "+
		"a job whose catch_up is one makes up for what it missed", name, write)
}

var (
	cronWord  = regexp.MustCompile(`^[-*?/,0-9LW#]*[*?0-9][-*?/,0-9LW#]*$`)
	cronNames = regexp.MustCompile(`(?i)^(sun|mon|tue|wed|thu|fri|sat)([-,](sun|mon|tue|wed|thu|fri|sat))+$`)
	cronName  = regexp.MustCompile(`(?i)^(sun|mon|tues?|wed|wednes|thu|thurs?|fri|sat|satur)(day)?$`)
)

// isField reports whether a word after the fifth field is one more of them. The name of one day may be that of a program: it is a field in
// capitals, or before a path.
func isField(next, after string) bool {
	if cronName.MatchString(next) {
		return after != "" && (strings.HasPrefix(after, "/") || next == strings.ToUpper(next))
	}
	return cronWord.MatchString(next) || cronNames.MatchString(next)
}

// sixth says of a line that goes on with another field of schedule, which would be its command, what to write. "" is for one that does not.
func sixth(expression []string, rest string) string {
	next, after := word(rest)
	switch {
	case !isField(next, after):
		return ""
	case len(expression) == 1:
		return fmt.Sprintf("%s stands before the command: %s is the whole schedule", next, expression[0])
	}
	return "it has six fields of schedule, and a crontab has five: write " + takeover.SixFields(append(slices.Clone(expression), next))
}

// interval says of @every, which some schedulers have and no crontab, what to write.
func interval(expression []string) string {
	if len(expression) == 2 {
		every := schedule.Spec{}
		if d, err := time.ParseDuration(expression[1]); err == nil {
			every.Every = schedule.Duration(d)
		}
		if _, err := every.Compile(); every.Every != 0 && err == nil {
			return fmt.Sprintf("no cron has %s: write a job whose schedule is {every: %s}", strings.Join(expression, " "), every.Every)
		}
	}
	return "no cron has @every: write a job whose schedule is an interval, such as {every: 5m}"
}

// scheduleStart is how schedules begin, also those of other crons.
var scheduleStart = regexp.MustCompile(`^[-0-9*@~?H]`)

// foreign reports whether no line begins as a schedule does, though some are neither settings nor comments.
func foreign(lines []string) bool {
	found := false
	for _, line := range lines {
		line = strings.Trim(line, blanks)
		if _, _, isSetting := setting(line); isSetting || line == "" || line[0] == '#' {
			continue
		}
		if scheduleStart.MatchString(line) {
			return false
		}
		found = true
	}
	return found
}

// usualUsers are users of most hosts that are no programs of any.
var usualUsers = map[string]bool{"root": true, "daemon": true, "nobody": true, "www-data": true, "www": true, "apache": true, "postgres": true, "ubuntu": true, "ec2-user": true}

var (
	// userForm is a user as system crontabs have it; FreeBSD adds a group and a class.
	userForm = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_.@:/+\\]*\$?$`)
	bareWord = regexp.MustCompile(`^[a-z_][a-z0-9_-]*$`)
)

func (cfg Config) isUser(word string) bool {
	return usualUsers[word] || cfg.IsUser != nil && bareWord.MatchString(word) && cfg.IsUser(word)
}

// namesUser finds the user before the command in a crontab that is said to be a user's own.
func (p *parser) namesUser(rest string) (user string, ok bool) {
	user, command := word(rest)
	if p.cfg.System || command == "" && !usualUsers[user] {
		return "", false
	}
	return user, p.cfg.isUser(user) || p.allNameUsers && bareWord.MatchString(user)
}

// allNameUsers reports whether lines that are said to be of a user's crontab all begin their commands with a bare word, of which one is a
// user: it is a system crontab, and the other words are users too.
func (cfg Config) allNameUsers(lines []string) bool {
	found := false
	for _, line := range lines {
		line = strings.TrimLeft(line, blanks)
		if _, _, isSetting := setting(line); isSetting || line == "" || line[0] == '#' {
			continue
		}
		_, rest, ok := fields(line)
		user, command := word(rest)
		if !ok {
			continue
		}
		if command == "" || !bareWord.MatchString(user) {
			return false
		}
		found = found || cfg.isUser(user)
	}
	return found
}
