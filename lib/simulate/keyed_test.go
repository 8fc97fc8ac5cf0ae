package simulate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// keyedRow is a row of what other schedulers do with runs of a key: the file's semantics explain the fields.
type keyedRow struct {
	ID, Policy string
	Limit      int
	Lasts      int `json:"lasts_s"`
	Arrivals   []keyedArrival
	Of         struct {
		Key, And string
		N        int
	} `json:"arrivals_of"`
	Expect struct {
		AtOnce  map[string]int    `json:"at_once"`
		InOrder bool              `json:"in_order"`
		Then    map[string][2]int `json:"at_the_end_of_arrivals"`
		Started int
	}
}

type keyedArrival struct {
	Key      any
	Function string
}

// Runs of a key as Inngest, Hatchet and Trigger.dev have them, whose tests and pages say what becomes of them.
func TestKeysOfOthers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "peers", "keyed-concurrency.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []keyedRow }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	otherwise := map[string]int{"singleton-key-false": 1} // docs/simulate-peers.md says why
	for _, row := range file.Rows {
		t.Run(row.ID, func(t *testing.T) {
			t.Parallel()
			row.play(t, otherwise)
		})
	}
	for id := range otherwise {
		if !strings.Contains(peersPage(t), "`"+id+"`") {
			t.Errorf("docs/simulate-peers.md does not name %s", id)
		}
	}
}

func (row keyedRow) play(t *testing.T, otherwise map[string]int) {
	arrivals := row.Arrivals
	for range row.Of.N {
		arrivals = append(arrivals, keyedArrival{Key: row.Of.Key})
		if row.Of.And != "" {
			arrivals = append(arrivals, keyedArrival{Key: row.Of.And})
		}
	}
	of := func(a keyedArrival) (function, at string) {
		function = a.Function
		if function == "" {
			function = "a"
		}
		return function, fmt.Sprintf("%s/%v", function, a.Key)
	}
	jobs, outcomes := map[string]any{}, map[string]any{}
	var script []any
	for i, a := range arrivals {
		function, _ := of(a)
		jobs[function] = map[string]any{"overlap": map[string]any{"policy": row.Policy, "limit": row.Limit, "key": "${ .payload.key }"}, "timeout": "1h", "target": anyHandler}
		outcomes[function] = []any{map[string]any{"takes": fmt.Sprintf("%ds", row.Lasts)}}
		script = append(script, map[string]any{"at": fmt.Sprintf("%ds", i+1), "do": "trigger", "job": function, "as": fmt.Sprintf("r%d", i), "payload": map[string]any{"key": a.Key}})
	}
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	r, err := played(t, document{"start": rfc(start), "until": "2h", "jobs": jobs, "outcomes": outcomes, "script": script, "workers": 100})
	if err != nil {
		t.Fatal(err)
	}
	then, started := start.Add(time.Duration(len(arrivals)+1)*time.Second), 0
	stand, begun, ended := map[string][2]int{}, map[string][]time.Time{}, map[string][]time.Time{}
	inOrder := true
	for _, one := range r.Runs {
		var i int
		if _, err := fmt.Sscanf(*one.As, "r%d", &i); err != nil {
			t.Fatal(err)
		}
		_, at := of(arrivals[i])
		n := stand[at]
		switch {
		case one.StartedAt == nil:
		case one.StartedAt.After(then):
			n[1]++
		case one.EndedAt.After(then):
			n[0]++
		}
		stand[at] = n
		if one.StartedAt != nil {
			started++
			inOrder = inOrder && (len(begun[at]) == 0 || one.StartedAt.After(begun[at][len(begun[at])-1]))
			begun[at], ended[at] = append(begun[at], *one.StartedAt), append(ended[at], *one.EndedAt)
		}
	}
	want := row.Expect.Started
	if own, differs := otherwise[row.ID]; differs {
		want = own
	}
	if started != want {
		t.Errorf("%d started, want %d", started, want)
	}
	if row.Expect.InOrder && !inOrder {
		t.Errorf("they started at %v", begun)
	}
	if row.Expect.Then != nil && !reflect.DeepEqual(stand, row.Expect.Then) {
		t.Errorf("in progress and waiting are %v, want %v", stand, row.Expect.Then)
	}
	for value, want := range row.Expect.AtOnce {
		most := 0
		for _, at := range begun["a/"+value] {
			n := 0
			for i, from := range begun["a/"+value] {
				if !from.After(at) && ended["a/"+value][i].After(at) {
					n++
				}
			}
			most = max(most, n)
		}
		if most != want {
			t.Errorf("at most %d of %s were in progress at once, want %d: %v", most, value, want, slices.Concat(begun["a/"+value], ended["a/"+value]))
		}
	}
}

// A payload that is kept apart from its run has a key as well.
func TestAKeyOfALargePayload(t *testing.T) {
	large := strings.Repeat("x", 2000)
	trigger := func(at, as, customer string) any {
		return map[string]any{"at": at, "do": "trigger", "job": "a", "as": as, "payload": map[string]any{"customer": customer, "more": large}}
	}
	r, err := played(t, document{"start": "2026-01-05T00:00:00Z", "until": "1h", "outcomes": map[string]any{"a": []any{map[string]any{"takes": "10s"}}},
		"jobs":   map[string]any{"a": map[string]any{"overlap": map[string]any{"policy": "skip", "key": "${ .payload.customer }"}, "target": anyHandler}},
		"script": []any{trigger("1s", "first", "acme"), trigger("2s", "second", "acme"), trigger("3s", "other", large)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"succeeded", "skipped", "succeeded"} {
		if got := r.Runs[i].State; got != want {
			t.Errorf("%s is %s, want %s", *r.Runs[i].As, got, want)
		}
	}
}
