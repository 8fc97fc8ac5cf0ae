package api

import (
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// judge adds what is wrong with values to what is wrong with the form of others, so that all of it is answered at once. What cannot be read is
// not also refused for what it says, and neither is what is judged by it.
func (f *form) judge(err error) {
	for _, e := range invalid.All(err) {
		if !f.clouded(e.Field) {
			f.list(&f.invalid, e.Field, "%s", messageOf(e))
		}
	}
}

// clouded tells whether a field is one that cannot be read, lies in or around one, or is judged by one.
func (f *form) clouded(field string) bool {
	return slices.ContainsFunc(f.unread, func(unread string) bool {
		return field == unread || within(field, unread) || within(unread, field) || judged(field, unread) || wire.JudgedInScenario(field, unread)
	})
}

// within tells whether a field lies in another one. All lie in the whole document, which is no reason not to name them.
func within(field, other string) bool {
	return other != "" && strings.HasPrefix(field, other) && (field[len(other)] == '.' || field[len(other)] == '[')
}

func judged(field, by string) bool {
	for name, others := range judgedBy {
		place, ok := strings.CutSuffix(field, name)
		if !ok || place != "" && !strings.HasSuffix(place, ".") {
			continue
		}
		if other, ok := strings.CutPrefix(by, place); ok && slices.Contains(others, other) {
			return true
		}
	}
	return false
}

// judgedBy has the fields whose values are judged by those of others.
var judgedBy = map[string][]string{
	"schedule.cron":            {"schedule.every", "schedule.at"},
	"schedule.timezone":        {"schedule.cron"},
	"schedule.phase":           {"schedule.every"},
	"schedule.at":              {"schedule.start"},
	"schedule.start":           {"schedule.cron", "schedule.every", "schedule.at", "schedule.timezone", "schedule.phase", "schedule.end"},
	"schedule.end":             {"schedule.cron", "schedule.every", "schedule.at", "schedule.timezone", "schedule.phase", "schedule.start"},
	"retry.max_attempts":       {"guarantee"},
	"retry.max":                {"retry.initial", "retry.max_attempts"},
	"timeout":                  {"queue"},
	"target":                   {"queue"},
	"target.http.retry_status": {"target.http.permanent_status"},
	"target.exec.argv":         {"target.exec.dir"},
	"target.aws.role_arn":      {"target.aws.arn"},
	"target.aws.invoke":        {"target.aws.arn"},
	"target.aws.message_group": {"target.aws.arn"},
	"target.aws.source":        {"target.aws.arn"},
	"target.aws.detail_type":   {"target.aws.arn"},
	"delay":                    {"at"},
	"max":                      {"runs", "per_second", "dry_run"},
	"cursor":                   {"runs"},
	"runs":                     {"per_second", "dry_run"},
	"failure":                  {"outcome"},
}
