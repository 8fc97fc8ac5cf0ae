package eventbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Config says how schedules become jobs.
type Config struct {
	URL string // what runs call, an address in which {group} and {name} are replaced; "": the targets of the schedules
	Now time.Time
	// Zone is the IANA name of the zone that stands for a ScheduleExpressionTimezone which is not known; "": such a schedule is lost.
	Zone string
}

// Read reads a text of JSON, or the YAML that "aws --output yaml" gives. It fails for a text that is neither, and for one in which
// nothing is an answer of the AWS command line; it says then what that looks like. A document that cannot be read among others that can
// is lost with a note.
func Read(name string, text []byte, cfg Config) (takeover.File, error) {
	documents, err := manifest.ReadEach(name, text)
	if err != nil && takeover.Looks(text, takeover.HowEventBridge) != "" {
		return takeover.File{}, takeover.Unlike(text, takeover.HowEventBridge)
	}
	if err != nil {
		return takeover.File{}, err
	}
	r := reader{cfg: cfg, lines: map[string]int{}}
	for _, d := range documents {
		if d.Err != nil {
			r.file.Note(d.Line, "document", true, "not kept: %s", d.Err)
			continue
		}
		r.value(d.Value)
	}
	if !r.understood {
		return takeover.File{}, takeover.Unlike(text, takeover.HowEventBridge)
	}
	return r.file, nil
}

type reader struct {
	cfg        Config
	lines      map[string]int // where the names stand that are taken
	understood bool           // there was an answer of the AWS command line
	file       takeover.File
}

// answers are members by which an answer of the AWS command line is known.
var answers = []string{"Schedules", "Rules", "Targets", "ScheduleExpression", "GroupName", "FlexibleTimeWindow", "Target", "Arn", "ScheduleArn"}

// value reads whatever stands where an answer of the AWS command line may stand.
func (r *reader) value(v *manifest.Value) {
	listing := func(name string) []*manifest.Value {
		if list := v.Member(name); list != nil && list.Kind == manifest.Array {
			return list.Items
		}
		return nil
	}
	arn := ""
	if member := v.Member("Arn"); member != nil && member.Kind == manifest.Text {
		arn = member.Scalar
	}
	if v.Kind == manifest.Array && len(v.Items) == 0 || slices.ContainsFunc(answers, func(name string) bool { return v.Member(name) != nil }) {
		r.understood = true
	}
	switch {
	case v.Kind == manifest.Array:
		for _, item := range v.Items {
			r.value(item)
		}
	case v.Kind != manifest.Object:
		r.file.Note(v.Line, "document", false, "got %s, want what \"aws scheduler get-schedule\" prints; left out", v.Kind)
	case v.Member("Schedules") != nil:
		for _, item := range listing("Schedules") {
			r.value(item)
		}
		r.more(v)
	case v.Member("Rules") != nil:
		for _, item := range listing("Rules") {
			r.rule(item)
		}
		r.more(v)
	case v.Member("Targets") != nil:
		r.file.Note(v.Line, "Targets", false, "targets of a rule of EventBridge, whose name is not with them; left out")
	case strings.Contains(arn, ":rule/"):
		r.rule(v)
	default:
		s := &scheduled{reader: r, o: takeover.Read(v)}
		s.read()
	}
}

// more says that a listing goes on where it was cut off.
func (r *reader) more(v *manifest.Value) {
	if v.Member("NextToken") != nil {
		r.file.Note(v.Line, "NextToken", false, "there is more than is listed here")
	}
}

// rule is of EventBridge's older way to fire by a schedule. Its targets and their input come with another answer, which does
// not name the rule.
func (r *reader) rule(v *manifest.Value) {
	if v.Kind != manifest.Object {
		r.file.Note(v.Line, "rule", false, "got %s, want an object; left out", v.Kind)
		return
	}
	o := takeover.Read(v)
	name := "rule " + o.Text("Name")
	if o.Has("ScheduleExpression") {
		r.file.Note(v.Line, name, true, "not kept: rules of EventBridge are not read, only schedules of EventBridge Scheduler; make it one, or write the job by hand")
		return
	}
	r.file.Note(v.Line, name, false, "it waits for events, and fires by no schedule; left out")
}

// scheduled is one schedule that is being read.
type scheduled struct {
	*reader
	o           *takeover.Object
	group, name string
	target      *takeover.Object
	arn, input  string
	def         job.Definition
}

func (s *scheduled) about() string { return s.group + "/" + s.name }

func (s *scheduled) say(format string, args ...any) {
	s.file.Note(s.o.Line(), s.about(), false, format, args...)
}

// errOver says that a schedule will never fire again, so that nothing is lost with it.
var errOver = errors.New("left out: its last fire is over")

func (s *scheduled) read() {
	s.name = s.o.Text("Name")
	if s.group = s.o.Text("GroupName"); s.group == "" {
		s.group = "default"
	}
	s.target = s.o.Object("Target")
	s.arn = s.target.Text("Arn")
	s.o.Skip("Arn", "LastModificationDate", "CreationDate", "ResponseMetadata", "ClientToken")

	before := len(s.file.Notes) // a schedule that is lost has that note alone
	err := s.convert()
	if wrong := s.o.Wrong(); wrong != "" {
		err = errors.New(wrong)
	}
	name := s.group + "." + s.name
	if err == nil && s.name == "" {
		err = errors.New("it has no Name")
	}
	if err == nil {
		if failed := takeover.Check(name, s.def); failed != nil {
			err = errors.New(takeover.Reasons(failed))
		}
	}
	if first, twice := s.lines[name]; err == nil && twice {
		err = fmt.Errorf("%s stands in line %d, too", name, first)
	}
	if err != nil {
		s.file.Notes = s.file.Notes[:before]
		if errors.Is(err, errOver) {
			s.say("%s", err)
			return
		}
		s.file.Note(s.o.Line(), s.about(), true, "not kept: %s", err)
		return
	}
	s.lines[name] = s.o.Line()
	s.file.Jobs = append(s.file.Jobs, takeover.Job{Line: s.o.Line(), Name: name, Def: s.def})
}

func (s *scheduled) convert() error {
	if !s.o.Has("ScheduleExpression") {
		return errors.New(`it does not say when it fires, as "aws scheduler list-schedules" does not; give what "aws scheduler get-schedule" prints for each`)
	}
	if err := s.when(); err != nil {
		return err
	}
	s.def.Labels = map[string]string{"source": "eventbridge", "group": s.group}
	if s.def.Description = s.o.Text("Description"); s.def.Description == "" {
		s.def.Description = "Schedule " + s.about() + " of EventBridge, which called " + s.arn
	}
	switch state := s.o.Text("State"); state {
	case "", "ENABLED":
	case "DISABLED":
		s.def.Paused = true
		s.say("it is disabled, and the job is paused")
	default:
		return invalid.Field("State", state, "ENABLED or DISABLED")
	}
	if s.o.Text("ActionAfterCompletion") == "DELETE" {
		s.say("ActionAfterCompletion DELETE is not kept: the job stays when its last fire is over")
	}
	if s.o.Has("KmsKeyArn") {
		s.say("KmsKeyArn is not kept: what a job holds is as safe as the server's data folder")
	}
	s.retries()
	if dead := s.target.Object("DeadLetterConfig").Text("Arn"); dead != "" {
		s.say("DeadLetterConfig %s is not kept: Belfry keeps dead letters itself; \"belfry dead-letter list\" shows them", dead)
	}
	if err := s.work(); err != nil {
		return err
	}
	s.unknown("Target", s.target)
	s.unknown("schedule", s.o)
	return nil
}

// unknown notes the fields that nobody asked for.
func (s *scheduled) unknown(what string, o *takeover.Object) {
	if left := o.Left(); len(left) > 0 {
		s.say("%s: not kept: %s", what, strings.Join(left, ", "))
	}
}

func (s *scheduled) when() error {
	zoneName := s.o.Text("ScheduleExpressionTimezone")
	if zoneName == "" {
		zoneName = "UTC"
	}
	zone, err := schedule.LoadZone(zoneName)
	if err != nil && s.cfg.Zone != "" {
		s.say("the ScheduleExpressionTimezone %q is not known; taken for %s, as --timezone has it", zoneName, s.cfg.Zone)
		zoneName = s.cfg.Zone
		zone, err = schedule.LoadZone(zoneName)
	}
	if err != nil {
		return fmt.Errorf("ScheduleExpressionTimezone: %s; correct it, or give --timezone", strings.TrimPrefix(err.Error(), "timezone: "))
	}
	e, err := parseExpression(s.o.Text("ScheduleExpression"), zone)
	if err != nil {
		return err
	}
	var start, end time.Time
	if e.at.IsZero() { // AWS does not look at the bounds of what fires once
		if start, err = s.date("StartDate"); err != nil {
			return err
		}
		if end, err = s.date("EndDate"); err != nil {
			return err
		}
	}
	s.o.Skip("StartDate", "EndDate")
	for _, note := range e.notes {
		s.say("ScheduleExpression: %s", note)
	}
	spec := e.spec(zoneName, start, end)
	if spec.Every != 0 {
		from := start
		if from.IsZero() {
			from, _ = s.date("CreationDate") // there is another way to count where it cannot be read
		}
		if from.IsZero() || from.UnixMilli() < 0 {
			s.say("neither StartDate nor CreationDate says since when its rate counts; counted from 1970 in UTC")
		} else {
			spec.Phase = schedule.Duration(time.Duration(from.UnixMilli()%spec.Every.Std().Milliseconds()) * time.Millisecond)
		}
	}
	if spec.At != nil && !spec.At.After(s.cfg.Now) || spec.End != nil && !spec.End.After(s.cfg.Now) {
		return errOver
	}
	if takeover.NeverFires(spec) {
		s.say(takeover.OnDemand, s.o.Text("ScheduleExpression"))
		s.o.Skip("FlexibleTimeWindow")
		return nil
	}
	s.def.Schedule = &spec
	return s.window()
}

// window keeps a flexible time window as jitter, as far as that goes.
func (s *scheduled) window() error {
	window := s.o.Object("FlexibleTimeWindow")
	minutes, _ := window.Whole("MaximumWindowInMinutes")
	switch mode := window.Text("Mode"); {
	case mode == "" || mode == "OFF":
	case mode != "FLEXIBLE" || minutes < 1 || minutes > 24*60:
		return fmt.Errorf("FlexibleTimeWindow: got %s of %d minutes, want OFF, or FLEXIBLE of 1 to 1440", mode, minutes)
	case minutes > maxJitter:
		s.say("FlexibleTimeWindow of %d minutes: runs start up to %d minutes late, the most there is", minutes, maxJitter)
		fallthrough
	default:
		s.def.Schedule.Jitter = schedule.Duration(time.Duration(min(minutes, maxJitter)) * time.Minute)
	}
	return nil
}

const maxJitter = 10 // minutes, that a job may have

// date reads a time as version 2 of the command line prints it, in seconds, as version 1 does, or as Python prints it.
func (s *scheduled) date(field string) (time.Time, error) {
	text, number := s.o.Number(field)
	if text == "" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); number || err == nil {
		if err != nil || seconds < 0 || seconds > 253402300799 {
			return time.Time{}, fmt.Errorf("%s: got %s, want seconds since 1970", field, text)
		}
		return time.UnixMilli(int64(math.Round(seconds * 1000))), nil
	}
	at, err := takeover.Date(text)
	if err != nil {
		return at, fmt.Errorf("%s: %w", field, err)
	}
	return at, nil
}

// What EventBridge does where a schedule has no RetryPolicy of its own, and the bounds of one.
const (
	defaultRetries = 185
	defaultAge     = 24 * time.Hour
	leastAge       = time.Minute
	longestWait    = 15 * time.Minute
)

// retries bounds the waits between attempts so that all of them together are not longer than the oldest age of an event, after
// which EventBridge gives up.
func (s *scheduled) retries() {
	policy := s.target.Object("RetryPolicy")
	again, ok := policy.Whole("MaximumRetryAttempts")
	if !ok {
		again = defaultRetries
	}
	age := defaultAge
	if seconds, ok := policy.Whole("MaximumEventAgeInSeconds"); ok {
		age = time.Duration(min(max(seconds, int64(leastAge/time.Second)), int64(defaultAge/time.Second))) * time.Second
	}
	attempts := min(max(again, 0), defaultRetries) + 1
	if attempts > job.MaxAttempts {
		attempts = job.MaxAttempts
		if ok && again != defaultRetries {
			s.say("MaximumRetryAttempts %d: tried %d times, the most there is", again, attempts)
		}
	}
	wait := max(min((age/time.Duration(attempts)).Truncate(time.Second), longestWait), time.Second)
	s.def.Retry = job.Retry{MaxAttempts: int(attempts), Initial: schedule.Duration(time.Second), Factor: 2, Max: schedule.Duration(wait)}
	s.def.CatchUp = job.CatchUp{Mode: job.CatchUpOne, Window: schedule.Duration(max(age, job.NewestWithin))}
	if age != defaultAge { // which is filled in, and says nothing of what their owner wants
		s.def.ExpiresAfter = schedule.Duration(age)
	}
}

// work gives what a run does.
func (s *scheduled) work() error {
	if s.input = s.target.Text("Input"); s.input == "" {
		s.input = "{}"
		s.say("it has no Input, for which EventBridge sends a notification of its own; Belfry sends {}")
	}
	if strings.Contains(s.input, "<aws.scheduler.") {
		s.say("Input has words such as <aws.scheduler.scheduled-time>, which only EventBridge replaces; docs/targets.md says what a run is told instead")
	}
	payload := json.RawMessage(s.input)
	if !json.Valid(payload) {
		text, err := json.Marshal(s.input)
		if err != nil {
			return fmt.Errorf("Target.Input: %w", err)
		}
		payload = text
		s.say("Input is not JSON: it is sent as a JSON string")
	}
	s.def.Payload = payload
	role := s.target.Text("RoleArn")
	if s.cfg.URL != "" {
		s.def.Target.HTTP = &target.HTTP{URL: strings.NewReplacer("{group}", s.group, "{name}", s.name).Replace(s.cfg.URL)}
		return nil
	}
	if role != "" {
		s.say("RoleArn %s is not kept, since it trusts EventBridge: the worker's own role calls the target, or a role_arn that trusts the worker", role)
	}
	return s.resource()
}
