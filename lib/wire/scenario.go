package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Scenario is what belfry simulate plays: jobs, what their targets do, and what people do meanwhile.
type Scenario struct {
	Start    time.Time                   `json:"start" doc:"when the clock begins, with an empty store"`
	Until    string                      `json:"until,omitempty" minLength:"1" maxLength:"64" doc:"when schedules end: a time, or a duration from start. Without it, nothing being left to happen ends the simulation, or 400 days do"`
	Workers  int                         `json:"workers,omitempty" minimum:"1" maximum:"10000" doc:"how many attempts run at once, 100 by default"`
	Jobs     map[string]Job              `json:"jobs,omitempty" doc:"jobs by their names, as PUT takes them; they are created at start"`
	Gates    map[string]GateDefinition   `json:"gates,omitempty" doc:"gates by their names, as PUT takes them; they are created at start, before the jobs"`
	Outcomes map[string]ScenarioOutcomes `json:"outcomes,omitempty" doc:"what targets do, by job, or by job and step such as etl/parts/load; * is all that are not named"`
	Script   []ScenarioLine              `json:"script,omitempty" maxItems:"10000" doc:"what people and machines do, and when"`
	Events   bool                        `json:"events,omitempty" doc:"the report says of each run what became of its record and its messages, event for event"`
	Expect   json.RawMessage             `json:"expect,omitempty" doc:"any part of the report; belfry simulate compares it, the API leaves it alone"`
}

// ScenarioOutcome is what a target does in one attempt. Without anything it succeeds at once.
type ScenarioOutcome struct {
	Takes      schedule.Duration `json:"takes,omitempty" doc:"how long the attempt lasts, 0s by default"`
	Result     json.RawMessage   `json:"result,omitempty" doc:"any JSON that it succeeds with"`
	Fails      *string           `json:"fails,omitempty" maxLength:"1024" doc:"the error that it fails with"`
	Permanent  bool              `json:"permanent,omitempty" doc:"with fails: it is not tried again"`
	Code       string            `json:"code,omitempty" minLength:"1" maxLength:"64" doc:"with fails: the code of the error"`
	Crashes    bool              `json:"crashes,omitempty" doc:"the worker dies after takes, and the run's lease runs out"`
	Never      bool              `json:"never,omitempty" doc:"it goes on until it is stopped: by its timeout, or since the run is cancelled"`
	StopsAfter schedule.Duration `json:"stops_after,omitempty" doc:"how long it goes on when the run is cancelled, 0s by default"`
}

// ScenarioOutcomes is what a target does, attempt for attempt: in JSON a list, or an object that chooses one. The last outcome of a list goes
// on for ever.
type ScenarioOutcomes struct {
	By   string                       `json:"by" minLength:"1" maxLength:"256" doc:"what chooses: .attempt, or a path in the payload or in what the target is handed, such as .payload.customer or .input.id"`
	Is   map[string][]ScenarioOutcome `json:"is" doc:"lists by the text of what by finds"`
	Else []ScenarioOutcome            `json:"else,omitempty" doc:"the list for all others; by default they succeed at once"`
}

// ScenarioChoice is ScenarioOutcomes' form as an object, without the methods that choose between that and a list.
type ScenarioChoice ScenarioOutcomes

// MarshalJSON gives a list, or an object where something chooses.
func (o ScenarioOutcomes) MarshalJSON() ([]byte, error) {
	if o.By == "" && o.Is == nil {
		return json.Marshal(o.Else)
	}
	return json.Marshal(ScenarioChoice(o))
}

// UnmarshalJSON takes what MarshalJSON gives.
func (o *ScenarioOutcomes) UnmarshalJSON(data []byte) error {
	var form ScenarioChoice
	var err error
	if bytes.HasPrefix(data, []byte("{")) {
		err = json.Unmarshal(data, &form)
	} else {
		err = json.Unmarshal(data, &form.Else)
	}
	if err != nil {
		return errors.New(`want a list of outcomes, or an object such as {"by": ".payload.customer", "is": {"acme": [{}]}}`)
	}
	*o = ScenarioOutcomes(form)
	return nil
}

// ScenarioTrigger asks for a run in a scenario.
type ScenarioTrigger struct {
	Job     string             `json:"job,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"the job to run"`
	As      string             `json:"as,omitempty" minLength:"1" maxLength:"128" doc:"a name for the run, by which later lines and the report call it"`
	RunAt   string             `json:"run_at,omitempty" minLength:"1" maxLength:"64" doc:"when the run is due: a time, or a duration from start; without it and delay, now"`
	Delay   *schedule.Duration `json:"delay,omitempty" doc:"how long from now the run is due"`
	Payload json.RawMessage    `json:"payload,omitempty" doc:"any JSON, instead of the job's own payload"`

	IgnorePause bool `json:"ignore_pause,omitempty" doc:"the run starts although its job is paused"`

	Overlap job.OwnOverlap `json:"overlap,omitzero" doc:"what becomes of the run while others of the job are in progress, in place of the job's policy"`
}

// ScenarioLine is a line of a scenario's script. What it takes beside at and do is said by do.
type ScenarioLine struct {
	At string `json:"at" minLength:"1" maxLength:"64" doc:"a time, or a duration from start"`
	Do string `json:"do" enum:"trigger,put,delete,pause,resume,cancel,retry,redrive,release,gate,close,open,down,workers,clock,look"`
	ScenarioTrigger
	Runs       []ScenarioTrigger  `json:"runs,omitempty" minItems:"1" maxItems:"1000" doc:"of trigger: many runs in one request"`
	Run        string             `json:"run,omitempty" minLength:"1" maxLength:"256" doc:"of cancel, retry, release and open: the name that a trigger gave the run, or job@time for one of a schedule"`
	Name       string             `json:"name,omitempty" minLength:"1" maxLength:"64" doc:"of gate: the gate that is created, replaced or deleted"`
	Definition ScenarioDefinition `json:"definition,omitzero" doc:"of put: the job; of gate: the gate, or null to delete it"`
	Gate       string             `json:"gate,omitempty" minLength:"1" maxLength:"132" doc:"of close and open: the gate"`
	Key        string             `json:"key,omitempty" minLength:"1" maxLength:"8192" doc:"of open, of the own gate of a job that has a line for each value of a key: the value whose line is to go on"`
	IfMatch    string             `json:"if_match,omitempty" minLength:"1" maxLength:"64" doc:"of put: only where the job has this ETag"`
	Reason     string             `json:"reason,omitempty" maxLength:"120" doc:"of pause, cancel and close: for people"`
	Force      bool               `json:"force,omitempty" doc:"of retry: also a run that succeeded, or whose outcome is unknown"`
	For        schedule.Duration  `json:"for,omitempty" doc:"of down: how long nothing ticks, works or answers"`
	N          *int               `json:"n,omitempty" minimum:"0" maximum:"10000" doc:"of workers: how many attempts run at once from now on"`
	By         string             `json:"by,omitempty" minLength:"1" maxLength:"64" doc:"of clock: how far the clocks of all hosts are set forward, as 2s, or back, as -2s"`
}

// ScenarioDefinition is what a line puts: a job, or a gate, or null, which takes a gate away. What stands there says which of them it is.
type ScenarioDefinition struct {
	Given bool // the line has it, though it may be null
	Job   *Job
	Gate  *GateDefinition
}

// DefinesGate reports whether an object with such fields is the definition of a gate, and not of a job: it has a field that only gates have.
func DefinesGate(fields []string) bool {
	return slices.ContainsFunc(fields, func(name string) bool {
		return name == "limit" || name == "max_waiting" || name == "max_wait" || name == "order"
	})
}

// MarshalJSON gives the job, the gate, or null.
func (d ScenarioDefinition) MarshalJSON() ([]byte, error) {
	if d.Job != nil {
		return json.Marshal(d.Job)
	}
	return json.Marshal(d.Gate)
}

// UnmarshalJSON takes what MarshalJSON gives.
func (d *ScenarioDefinition) UnmarshalJSON(data []byte) error {
	*d = ScenarioDefinition{Given: true}
	if string(data) == "null" {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return errors.New("want a job, a gate or null")
	}
	if DefinesGate(slices.Collect(maps.Keys(fields))) {
		return json.Unmarshal(data, &d.Gate)
	}
	return json.Unmarshal(data, &d.Job)
}

// ScenarioFieldsToCome are the fields of a later version, by the name of the type that is without them; ScenarioActionsToCome are what do will
// take.
var (
	ScenarioFieldsToCome = map[string][]string{
		"Scenario":        {"calendars"},
		"ScenarioOutcome": {"accepts", "bytes", "type"},
		"ScenarioTrigger": {"key"},
		"ScenarioLine": {"calendar", "signal", "callback", "step", "set", "skip", "newest", "dry_run", "from", "to",
			"backfill", "success", "failure", "heartbeat"},
	}
	ScenarioActionsToCome = []string{"backfill", "calendar", "signal", "callback", "step", "hold", "continue"}
)

// JudgedInScenario reports whether the value of a field of a scenario is judged by another one: names of runs by the lines that give them,
// names of jobs by the jobs, names of gates by the gates. A wrong one would make the field look wrong, too.
func JudgedInScenario(field, by string) bool {
	switch {
	case strings.HasPrefix(field, "outcomes."):
		return strings.HasPrefix(by, "jobs")
	case strings.HasPrefix(field, "jobs.") && strings.HasSuffix(field, "].gate"):
		return by == "gates"
	case strings.HasPrefix(field, "script[") && strings.HasSuffix(field, "].run"):
		return strings.HasPrefix(by, "script") && (strings.HasSuffix(by, "script") || strings.HasSuffix(by, "]") ||
			strings.HasSuffix(by, ".as") || strings.HasSuffix(by, ".at") || strings.HasSuffix(by, ".do") || strings.HasSuffix(by, ".runs"))
	case strings.HasPrefix(field, "script[") && strings.HasSuffix(field, "].job"):
		return by == strings.TrimSuffix(field, "job")+"runs"
	}
	return false
}
