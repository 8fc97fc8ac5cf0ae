package job_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// What is said of gates, how it is stored and shown, or which field is refused.
func TestGates(t *testing.T) {
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = fmt.Sprintf("%q", fmt.Sprint("g", i))
	}
	long := strings.Repeat("x", 64)
	for said, row := range map[string]struct {
		shown   string // "" for nothing
		refused string // the field
		want    string // a part of what would be right
	}{
		`[]`:                               {},
		`null`:                             {},
		`["stripe"]`:                       {shown: `["stripe"]`},
		`[{"gate": "stripe"}]`:             {shown: `["stripe"]`},
		`[{"gate": "stripe", "units": 1}]`: {shown: `["stripe"]`},
		`["stripe", {"gate": "gpu", "units": 2}]`: {shown: `["stripe",{"gate":"gpu","units":2}]`},
		`[{"gate": "gpu", "units": 1000}]`:        {shown: `[{"gate":"gpu","units":1000}]`},
		`["` + long + `"]`:                        {shown: `["` + long + `"]`},
		`[` + strings.Join(nine[:8], ",") + `]`:   {shown: `[` + strings.Join(nine[:8], ",") + `]`},
		`[` + strings.Join(nine, ",") + `]`:       {refused: "gates", want: "at most 8"},
		`["` + long + `x"]`:                       {refused: "gates[0].gate", want: "1 to 64 letters"},
		`["a", "job:report"]`:                     {refused: "gates[1].gate", want: "1 to 64 letters"},
		`[""]`:                                    {refused: "gates[0].gate", want: "1 to 64 letters"},
		`["a", "b", {"gate": "a", "units": 2}]`:   {refused: "gates[2].gate", want: "each gate once"},
		`[{"gate": "a", "units": 1001}]`:          {refused: "gates[0].units", want: "1 to 1000"},
		`["b", {"gate": "a", "units": -1}]`:       {refused: "gates[1].units", want: "1 to 1000"},

		`[{"gate": "a", "key": "${ .payload.customer }"}]`: {shown: `[{"gate":"a","units":1,"key":"${ .payload.customer }"}]`},
		`["b", {"gate": "a", "key": "acme"}]`:              {refused: "gates[1].key", want: "${"},
		`[{"gate": "a", "key": "${ .steps.x }"}]`:          {refused: "gates[0].key", want: "payload"},
	} {
		t.Run(said, func(t *testing.T) {
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "x"}}}
			plain := def.WithDefaults()
			if err := json.Unmarshal([]byte(said), &def.Gates); err != nil {
				t.Fatal(err)
			}
			given := fmt.Sprint(def.Gates)
			stored := def.WithDefaults()
			_, err := stored.Validate(func(string) bool { return true })
			if row.refused != "" {
				all := invalid.All(err)
				if len(all) != 1 || all[0].Field != row.refused || !strings.Contains(all[0].Want, row.want) {
					t.Errorf("refused with %v, want %s: … %s …", err, row.refused, row.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if again := stored.WithDefaults(); !reflect.DeepEqual(again, stored) || fmt.Sprint(def.Gates) != given {
				t.Errorf("defaults twice give %+v, and leave %v of %v", again, def.Gates, given)
			}
			text, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			var shown struct{ Gates json.RawMessage }
			if err := json.Unmarshal(text, &shown); err != nil || string(shown.Gates) != row.shown {
				t.Errorf("shown as %s, %v; want %s", shown.Gates, err, row.shown)
			}
			value, err := record.Encode(stored)
			if err != nil {
				t.Fatal(err)
			}
			var back job.Definition
			if err := record.Decode(value, &back); err != nil || len(back.Gates) != len(stored.Gates) || len(back.Gates) > 0 && !reflect.DeepEqual(back.Gates, stored.Gates) {
				t.Errorf("read back as %+v, %v", back.Gates, err)
			}
			before, err := record.Encode(plain)
			if err != nil {
				t.Fatal(err)
			}
			if same := string(before) == string(value); same != (row.shown == "") {
				t.Errorf("the bytes are those of a definition without gates: %t", same)
			}
		})
	}
}

func TestGatesThatAreNone(t *testing.T) {
	for _, text := range []string{`3`, `"a"`, `{}`, `[3]`, `[["a"]]`, `[{"gate": 3}]`, `[{"gate": "a", "units": "2"}]`, `[{"gate": "a", "unit": 2}]`} {
		var gates []job.GateUse
		if err := json.Unmarshal([]byte(text), &gates); err == nil {
			t.Errorf("%s is read as %+v", text, gates)
		}
	}
}

// The steps of a workflow are to pass gates, and not its run.
func TestAWorkflowPassesNoGates(t *testing.T) {
	def := job.Definition{Target: target.Spec{Workflow: json.RawMessage(`{"steps": {}}`)}, Gates: []job.GateUse{{Gate: "stripe"}}}
	_, err := def.WithDefaults().Validate(func(string) bool { return true })
	for _, e := range invalid.All(err) {
		if e.Field == "gates" && strings.Contains(e.Want, "nothing beside a workflow") {
			return
		}
	}
	t.Errorf("refused with %v", err)
}
