package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// What a definition may hold.
const (
	MaxName        = 128
	MaxPayload     = 8 << 10 // of a job: it is read with the job at every fire; a request may bring more
	MaxDescription = 1024
	MaxLabels      = 32
	MaxLabel       = 128
	MaxAttempts    = 100
	MaxTimeout     = 24 * time.Hour
	MaxRetryWait   = 7 * 24 * time.Hour
	MaxRetrying    = 365 * 24 * time.Hour // all waits together: a replaced definition is kept for longer
	MinRetention   = 24 * time.Hour       // twice as long as a message may live
	MinExpiry      = time.Second
	MaxPauseAfter  = 1000
	MaxMaxRuns     = 10_000 // fires: they are counted at the edit
	MaxRetention   = 5 * 365 * 24 * time.Hour
)

// NamePattern is what the names of jobs, queues and labels look like.
const NamePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`

// ValidName refuses names that a job may not have.
func ValidName(name string) error {
	if !named(name) {
		return invalid.Field("name", name, "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit")
	}
	return nil
}

// named tells what NamePattern does, at a small part of its cost: the name in every message is looked at.
func named(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return len(name) >= 1 && len(name) <= MaxName
}

// Validate checks a definition with its defaults filled in and gives its compiled schedule, nil where it has none. knownQueue
// tells which pools of workers there are. The error names every field that is wrong.
func (d Definition) Validate(knownQueue func(string) bool) (*schedule.Schedule, error) {
	// What would be right is put into words only where something is wrong: batches of thousands are checked.
	var wrong []error
	check, between := checks(&wrong)

	var compiled *schedule.Schedule
	if d.Schedule != nil {
		var err error
		if compiled, err = d.Schedule.Check(); err != nil {
			wrong = append(wrong, invalid.Under("schedule", err))
		}
	}
	wrong = append(wrong, invalid.Under("target", d.Target.Validate()))

	check(d.MaxRuns >= 0 && d.MaxRuns <= MaxMaxRuns, "max_runs", d.MaxRuns, "1 to %d, or nothing", MaxMaxRuns)
	check(d.PauseAfter >= 0 && d.PauseAfter <= MaxPauseAfter, "pause_after", d.PauseAfter, "1 to %d, or nothing", MaxPauseAfter)
	check(d.MaxRuns == 0 || d.Schedule != nil, "max_runs", d.MaxRuns, "a schedule beside it, whose fires it counts")
	check(len(d.Description) <= MaxDescription, "description", d.Description, "at most %d bytes", MaxDescription)
	if len(d.Payload) > MaxPayload {
		check(false, "payload", fmt.Sprintf("%d bytes", len(d.Payload)), "at most %d bytes; give more with each run, or where to find it", MaxPayload)
	} else if len(d.Payload) > 0 && !json.Valid(d.Payload) {
		check(false, "payload", string(d.Payload), "JSON")
	}
	check(knownQueue(d.Queue), "queue", d.Queue, `a queue that has workers, such as "default"`)
	check(slices.Contains(queue.Priorities, d.Priority), "priority", d.Priority, "high, normal or low")
	if d.Target.Workflow != nil {
		const want = "nothing beside a workflow: its steps have it"
		check(d.Timeout == 0, "timeout", d.Timeout, want)
		check(d.Retry == Retry{}, "retry", "a retry", want)
		check(d.Guarantee == "", "guarantee", d.Guarantee, want)
	} else {
		d.checkAttempts(check, between)
	}
	check(d.CatchUp.Mode == CatchUpOne || d.CatchUp.Mode == CatchUpAll || d.CatchUp.Mode == CatchUpNone,
		"catch_up.mode", d.CatchUp.Mode, "one, all or none")
	between("catch_up.window", d.CatchUp.Window, NewestWithin, MaxRetention)
	if d.ExpiresAfter != 0 {
		between("expires_after", d.ExpiresAfter, MinExpiry, MaxRetention)
	}
	if d.Deadline != 0 {
		between("deadline", d.Deadline, MinExpiry, MaxRetention)
		if d.ExpiresAfter >= d.Deadline {
			wrong = append(wrong, invalid.Field("deadline", d.Deadline.String(), "longer than expires_after, "+d.ExpiresAfter.String()))
		}
	}
	between("retention", d.Retention, MinRetention, MaxRetention)

	if err := d.Overlap.validate(); err != nil {
		wrong = append(wrong, err)
	}
	if err := d.validateGates(); err != nil {
		wrong = append(wrong, err)
	}
	if err := d.On.validate(); err != nil {
		wrong = append(wrong, err)
	}
	wrong = append(wrong, CheckLabels("labels", d.Labels))
	return compiled, errors.Join(wrong...)
}

// CheckLabels refuses what no job may have as its labels: joined *invalid.Error under a field.
func CheckLabels(field string, labels map[string]string) error {
	var wrong []error
	if len(labels) > MaxLabels {
		wrong = append(wrong, invalid.Field(field, fmt.Sprintf("%d labels", len(labels)), fmt.Sprintf("at most %d", MaxLabels)))
	}
	for key, value := range labels {
		if !named(key) {
			wrong = append(wrong, invalid.Field(field, key, "names of letters, digits, dots, underscores or hyphens"))
		}
		if len(value) > MaxLabel || strings.Contains(value, "\x00") {
			wrong = append(wrong, invalid.Field(field+"."+key, value, fmt.Sprintf("at most %d bytes, no NUL", MaxLabel)))
		}
	}
	return errors.Join(wrong...)
}

// checkAttempts checks what a job says of the attempts of a run.
func (d Definition) checkAttempts(check checking, between bounding) {
	check(d.Guarantee == AtLeastOnce || d.Guarantee == AtMostOnce, "guarantee", d.Guarantee, "at_least_once or at_most_once")
	between("timeout", d.Timeout, time.Second, MaxTimeout)
	check(d.Guarantee != AtMostOnce || d.Retry.MaxAttempts == 1, "retry.max_attempts", d.Retry.MaxAttempts,
		"1, or nothing, under at_most_once: a second try could be a second effect")
	d.Retry.check(check, between)
}

// Both report whether a field is right.
type (
	checking func(ok bool, field string, got any, want string, args ...any) bool
	bounding func(field string, got schedule.Duration, least, most time.Duration) bool
)

// checks returns functions that add to a list of what is wrong.
func checks(wrong *[]error) (checking, bounding) {
	check := func(ok bool, field string, got any, want string, args ...any) bool {
		if !ok {
			*wrong = append(*wrong, invalid.Field(field, fmt.Sprint(got), fmt.Sprintf(want, args...)))
		}
		return ok
	}
	return check, func(field string, got schedule.Duration, least, most time.Duration) bool {
		if got.Std() < least || got.Std() > most {
			return check(false, field, got, "a duration from %s to %s", schedule.Duration(least), schedule.Duration(most))
		}
		return true
	}
}

// check bounds a field by another only where the other is right: else it would be blamed for it.
func (r Retry) check(check checking, between bounding) {
	attempts := check(r.MaxAttempts >= 1 && r.MaxAttempts <= MaxAttempts, "retry.max_attempts", r.MaxAttempts, "1 to %d", MaxAttempts)
	initial := between("retry.initial", r.Initial, time.Millisecond, MaxRetryWait)
	if initial && between("retry.max", r.Max, r.Initial.Std(), MaxRetryWait) && attempts {
		check(time.Duration(r.MaxAttempts)*r.Max.Std() <= MaxRetrying, "retry.max", r.Max,
			"waits of at most %s over all attempts", schedule.Duration(MaxRetrying))
	}
	check(r.Factor >= 1 && r.Factor <= 10, "retry.factor", r.Factor, "1 to 10")
}

// Check returns r with its defaults filled in. Its error joins an *invalid.Error for each field that is wrong, named as in a job: retry.initial.
func (r Retry) Check() (Retry, error) {
	r = r.withDefaults(AtLeastOnce)
	var wrong []error
	r.check(checks(&wrong))
	return r, errors.Join(wrong...)
}
