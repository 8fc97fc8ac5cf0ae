package job_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// What is said of overlap, how it is stored and shown, or which field is refused.
func TestOverlap(t *testing.T) {
	for said, row := range map[string]struct {
		shown   string // "" for nothing
		refused string // the field
		want    string // a part of what would be right
	}{
		`"skip"`:                                       {shown: `"skip"`},
		`{"policy": "skip"}`:                           {shown: `"skip"`},
		`{"policy": "skip", "limit": 1}`:               {shown: `"skip"`},
		`{"policy": "skip", "limit": 3}`:               {shown: `{"policy":"skip","limit":3}`},
		`{"policy": "skip", "limit": 1000}`:            {shown: `{"policy":"skip","limit":1000}`},
		`"allow"`:                                      {},
		`{"policy": "allow"}`:                          {},
		`{}`:                                           {},
		`null`:                                         {},
		`{"policy": "skip", "limit": 1001}`:            {refused: "overlap.limit", want: "1 to 1000"},
		`{"policy": "skip", "limit": -1}`:              {refused: "overlap.limit", want: "1 to 1000"},
		`"queue"`:                                      {shown: `"queue"`},
		`{"policy": "queue"}`:                          {shown: `"queue"`},
		`{"policy": "queue", "limit": 1}`:              {shown: `"queue"`},
		`{"policy": "queue", "limit": 2}`:              {shown: `{"policy":"queue","limit":2}`},
		`{"policy":"queue","max_waiting":0}`:           {shown: `{"policy":"queue","limit":1,"max_waiting":0}`},
		`{"policy":"queue","max_waiting":7}`:           {shown: `{"policy":"queue","limit":1,"max_waiting":7}`},
		`{"limit": 3}`:                                 {shown: `{"policy":"allow","limit":3}`},
		`{"policy": "allow", "limit": 3}`:              {shown: `{"policy":"allow","limit":3}`},
		`{"limit": 3, "max_waiting": 100000}`:          {shown: `{"policy":"allow","limit":3,"max_waiting":100000}`},
		`{"policy": "queue", "limit": 1001}`:           {refused: "overlap.limit", want: "1 to 1000"},
		`{"policy": "allow", "limit": 1001}`:           {refused: "overlap.limit", want: "1 to 1000"},
		`{"policy":"queue","max_waiting":-1}`:          {refused: "overlap.max_waiting", want: "0 to 100000"},
		`{"limit":1,"max_waiting":100001}`:             {refused: "overlap.max_waiting", want: "0 to 100000"},
		`{"policy": "queue_one", "max_waiting": 1}`:    {refused: "overlap.max_waiting", want: "no max_waiting under queue_one, where one run waits; queue has it"},
		`{"policy": "queue_latest", "max_waiting": 1}`: {refused: "overlap.max_waiting", want: "no max_waiting under queue_latest, where one run waits; queue has it"},
		`{"policy": "strict", "limit": 2}`:             {refused: "overlap.limit", want: "1 under strict"},
		`"cancel"`:                                     {shown: `"cancel"`},
		`{"policy": "cancel", "limit": 1}`:             {shown: `"cancel"`},
		`{"policy": "replace", "limit": 3}`:            {shown: `{"policy":"replace","limit":3}`},
		`{"policy": "cancel", "max_waiting": 1}`:       {refused: "overlap.max_waiting", want: "no max_waiting under cancel, where one run waits; queue has it"},
		`{"policy": "replace", "max_waiting": 0}`:      {refused: "overlap.max_waiting", want: "no max_waiting under replace, where no other run waits; queue has it"},
		`"forbid"`:                                     {refused: "overlap.policy", want: "allow, skip, queue, queue_one, queue_latest, cancel, replace or strict"},
		`{"policy": "skip", "key": ".x"}`:              {refused: "overlap.key", want: "an expression in it"},
		`{"policy": "skip", "key": "${ .x }"}`:         {refused: "overlap.key", want: "one of payload, job, labels and nominal_time"},
		`{"key": "${ .job }"}`:                         {refused: "overlap.key", want: "a limit beside it"},
		`{"policy":"queue","key":"${ .payload.a }"}`:   {shown: `{"policy":"queue","limit":1,"key":"${ .payload.a }"}`},
		`{"limit":2,"key":"${ .labels.team }-x"}`:      {shown: `{"policy":"allow","limit":2,"key":"${ .labels.team }-x"}`},
		`{"policy":"skip","max_waiting":0}`:            {refused: "overlap.max_waiting", want: "queue has it"},
		`{"policy":"allow","max_waiting":10}`:          {refused: "overlap.max_waiting", want: "a limit beside it"},
	} {
		t.Run(said, func(t *testing.T) {
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}}
			plain, err := record.Encode(def.WithDefaults())
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"overlap": `+said+`}`), &def); err != nil {
				t.Fatal(err)
			}
			def = def.WithDefaults()
			_, err = def.Validate(func(string) bool { return true })
			if row.refused != "" {
				all := invalid.All(err)
				if len(all) != 1 || all[0].Field != row.refused || !strings.Contains(all[0].Want, row.want) {
					t.Errorf("refused with %v, want %s named, and %q", err, row.refused, row.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			stored, err := record.Encode(def)
			if err != nil {
				t.Fatal(err)
			}
			if same := string(stored) == string(plain); same != (row.shown == "") {
				t.Errorf("stored as one that says nothing: %t", same)
			}
			var back job.Definition
			if err := record.Decode(stored, &back); err != nil || !reflect.DeepEqual(back.Overlap, def.Overlap) {
				t.Errorf("read back as %+v, %v", back.Overlap, err)
			}
			text, err := json.Marshal(back)
			if err != nil {
				t.Fatal(err)
			}
			if want := `"overlap":` + row.shown; strings.Contains(string(text), `"overlap"`) != (row.shown != "") || row.shown != "" && !strings.Contains(string(text), want) {
				t.Errorf("shown as %s, want %s", text, want)
			}
			var again job.Definition
			if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again.WithDefaults().Overlap, def.Overlap) {
				t.Errorf("what is shown is read as %+v, %v", again.Overlap, err)
			}
		})
	}
	for _, wrong := range []string{`3`, `["skip"]`, `true`, `{"policy": 3}`, `{"policy": "skip", "most": 2}`, `{"policy": "skip", "limit": "2"}`} {
		var o job.Overlap
		if err := json.Unmarshal([]byte(wrong), &o); err == nil || !strings.Contains(err.Error(), "policy") {
			t.Errorf("%s is read as %+v, %v", wrong, o, err)
		}
	}
}
