package gate_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// What is said of a gate, how it is shown, or which field is refused.
func TestADefinition(t *testing.T) {
	for said, row := range map[string]struct {
		shown   string
		refused string // the field
		want    string // a part of what would be right
	}{
		`{"limit": 1}`:                          {shown: `{"limit":1,"order":"priority"}`},
		`{"limit": 1000, "order": "priority"}`:  {shown: `{"limit":1000,"order":"priority"}`},
		`{"limit": 2, "order": "fifo"}`:         {shown: `{"limit":2,"order":"fifo"}`},
		`{"limit": 2, "max_waiting": 0}`:        {shown: `{"limit":2,"max_waiting":0,"order":"priority"}`},
		`{"limit": 2, "max_waiting": 100000}`:   {shown: `{"limit":2,"max_waiting":100000,"order":"priority"}`},
		`{}`:                                    {refused: "limit", want: "close the gate"},
		`{"limit": 0}`:                          {refused: "limit", want: "close the gate"},
		`{"limit": -1}`:                         {refused: "limit", want: "1 to 1000"},
		`{"limit": 1001}`:                       {refused: "limit", want: "1 to 1000"},
		`{"limit": 1, "max_waiting": -1}`:       {refused: "max_waiting", want: "0 to 100000"},
		`{"limit": 1, "max_waiting": 100001}`:   {refused: "max_waiting", want: "0 to 100000"},
		`{"limit": 2, "order": "deadline"}`:     {shown: `{"limit":2,"order":"deadline"}`},
		`{"limit": 2, "max_wait": "3600s"}`:     {shown: `{"limit":2,"order":"priority","max_wait":"1h"}`},
		`{"limit": 2, "max_wait": "1825d"}`:     {shown: `{"limit":2,"order":"priority","max_wait":"1825d"}`},
		`{"limit": 2, "max_wait": "0s"}`:        {shown: `{"limit":2,"order":"priority"}`},
		`{"limit": 1, "max_wait": "999ms"}`:     {refused: "max_wait", want: "1s to 1825d; where nobody is to wait, max_waiting: 0"},
		`{"limit": 1, "max_wait": "1826d"}`:     {refused: "max_wait", want: "1s to 1825d"},
		`{"limit": 1, "order": "fair"}`:         {refused: "order", want: "priority, fifo or deadline; this one is not available yet"},
		`{"limit": 1, "order": "shortest"}`:     {refused: "order", want: "priority, fifo or deadline; this one is not available yet"},
		`{"limit": 1, "order": "newest first"}`: {refused: "order", want: "priority, fifo or deadline"},
	} {
		t.Run(said, func(t *testing.T) {
			var def gate.Definition
			if err := json.Unmarshal([]byte(said), &def); err != nil {
				t.Fatal(err)
			}
			stored := def.WithDefaults()
			err := stored.Validate()
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
			text, err := json.Marshal(stored.Shown())
			if err != nil || string(text) != row.shown {
				t.Errorf("shown as %s, %v; want %s", text, err, row.shown)
			}
			var back gate.Definition
			if err := json.Unmarshal(text, &back); err != nil || !back.WithDefaults().Equal(stored) {
				t.Errorf("%s is read as %+v, %v", text, back, err)
			}
		})
	}
}

func TestDefinitionsThatDiffer(t *testing.T) {
	none, one, uno := 0, 1, 1
	defs := []gate.Definition{{Limit: 1}, {Limit: 2}, {Limit: 1, Order: gate.OrderFIFO}, {Limit: 1, MaxWaiting: &none}, {Limit: 1, MaxWaiting: &one}, {Limit: 1, MaxWait: 1000}}
	for i, a := range defs {
		for j, b := range defs {
			if a.Equal(b) != (i == j) {
				t.Errorf("%+v and %+v are the same: %t", a, b, a.Equal(b))
			}
		}
	}
	if !defs[4].Equal(gate.Definition{Limit: 1, MaxWaiting: &uno}) {
		t.Error("two that wait for one each differ")
	}
}

func TestNamesOfGates(t *testing.T) {
	for name, right := range map[string]bool{
		"stripe": true, "a": true, "0": true, "a.b-c_D": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "job:report": false, ".a": false, "-": false, "a b": false, "a#b": false, "ä": false, "a/b": false, "a\n": false,
	} {
		if err := gate.ValidName(name); (err == nil) != right {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A definition is read as it was written, under the condition that nobody has written since, and one that is made after a deletion goes on from there.
func TestANamedGateInTheStore(t *testing.T) {
	most := 7
	named := gate.Named{Tenant: "acme", Name: "stripe", Def: gate.Definition{Limit: 10, MaxWaiting: &most, Order: gate.OrderFIFO}, Generation: nominal,
		Closed: &gate.Change{At: nominal, Reason: "they are away"}, Created: nominal, Updated: nominal}
	op, err := named.Put(5)
	if err != nil {
		t.Fatal(err)
	}
	if op.Key != (store.Key{Partition: "gates#acme", Sort: "stripe"}) || op.If != store.Absent || !op.Expires.IsZero() || op.Attempt != 5 {
		t.Errorf("written as %+v", op)
	}
	back, err := gate.NamedFromItem("acme", store.Item{Key: op.Key, Version: 3, Value: op.Value})
	named.Version = 3
	if err != nil || !reflect.DeepEqual(back, named) {
		t.Fatalf("read back as %+v, %v", back, err)
	}
	if op, err = back.Put(6); err != nil || op.If != store.Version(3) {
		t.Errorf("written again as %+v, %v", op, err)
	}

	gone := gate.Named{Tenant: "acme", Name: "stripe", Version: 3, Generation: named.Next(nominal - 5), Updated: nominal, Deleted: true}
	if gone.Generation != nominal+1 || named.Next(nominal+9) != nominal+9 {
		t.Errorf("the next generation is %d, and %d", gone.Generation-nominal, named.Next(nominal+9)-nominal)
	}
	if op, err = gone.Put(7); err != nil || op.If != store.Version(3) || op.Expires != time.UnixMilli(nominal).Add(24*time.Hour) {
		t.Errorf("a deletion is written as %+v, %v", op, err)
	}
	none, err := gate.NamedFromItem("acme", store.Item{Key: op.Key, Version: 4, Value: op.Value})
	if err != nil || none.Version != 0 || !none.Deleted || none.Name != "stripe" || none.Generation != gone.Generation {
		t.Fatalf("after a deletion there is %+v, %v", none, err)
	}
	none.Deleted, none.Def.Limit = false, 1
	if op, err = none.Put(8); err != nil || op.If != store.Version(4) || !op.Expires.IsZero() {
		t.Errorf("made anew as %+v, %v", op, err)
	}

	never, err := gate.NamedFromItem("acme", store.Item{Key: op.Key})
	if err != nil || never.Version != 0 || never.Name != "stripe" || never.Tenant != "acme" {
		t.Errorf("where there was none: %+v, %v", never, err)
	}
	if op, err = never.Put(9); err != nil || op.If != store.Absent {
		t.Errorf("made as %+v, %v", op, err)
	}
	if _, err := gate.NamedFromItem("acme", store.Item{Key: op.Key, Version: 1, Value: []byte("no record")}); err == nil {
		t.Error("what is no record was read")
	}
}
