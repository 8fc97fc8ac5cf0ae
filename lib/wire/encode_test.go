package wire_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type texted string

func (t texted) MarshalText() ([]byte, error) { return []byte(t), nil }

type inner struct {
	Deep string `json:"deep,omitempty"`
}

type outer struct {
	inner

	Name  string
	Text  *string        `json:"text"`
	List  []any          `json:"list,omitempty"`
	Map   map[string]any `json:"map,omitempty"`
	When  time.Time
	Raw   json.RawMessage `json:"raw,omitempty"`
	Bytes []byte          `json:"bytes,omitempty"`
	Own   texted          `json:"own,omitempty"`
	own   string
}

// node leads back to itself where JSON does not look.
type node struct {
	Parent *node  `json:"-"`
	Secret string `json:"-"`
	Name   string
}

// formed makes its JSON of one of the things that it holds.
type formed struct {
	Back  *formed
	Bytes string
	Shown string
}

func (f *formed) MarshalJSON() ([]byte, error) { return json.Marshal(f.Shown) }

func around(name string) *node {
	n := &node{Secret: "\xff", Name: name}
	n.Parent = n
	return n
}

func itself(shown string) *formed {
	f := &formed{Shown: shown}
	f.Back = f
	return f
}

func TestEncodeRefusesWhatJSONWouldReplace(t *testing.T) {
	const bad = "a\xff"
	text := bad
	var job wire.Job
	job.Labels = map[string]string{"team": bad}
	for field, v := range map[string]any{
		"":              bad,
		"Name":          outer{Name: bad},
		"deep":          &outer{inner: inner{bad}},
		"text":          outer{Text: &text},
		"list[1].map.x": outer{List: []any{1, &outer{Map: map[string]any{"x": bad}}}},
		"map.a?":        outer{Map: map[string]any{bad: 1}},
		"own":           outer{Own: bad},
		"[0]":           [2]string{bad},
		"labels.team":   job,
		"[1].Name":      []*node{around("a"), around(bad)},
		"x.Shown":       map[string]any{"x": itself(bad)},
		"reason":        wire.CancelRequest{Reason: bad},
		"a":             map[string]target.Value{"a": target.Text(bad)},
	} {
		got, err := wire.Encode(v)
		var wrong *invalid.Error
		if field == "a" && errors.As(err, &wrong) {
			wrong.Field = wrong.Field[:1] // a value has a form of its own
		}
		if !errors.As(err, &wrong) || wrong.Field != field || wrong.Got != `\xff` || got != nil {
			t.Errorf("%s: %s, %v", field, got, err)
		}
	}
}

func TestEncodeLeavesTheRestAsItIs(t *testing.T) {
	for _, v := range []any{
		nil, "\ufffd", "é😀<&>", (*outer)(nil), outer{own: "\xff"}, outer{Bytes: []byte{0xff}}, outer{Raw: json.RawMessage(`"\ufffd\ud800"`)},
		json.RawMessage(`{"a":"\ufffd"}`), []any{json.RawMessage(`"\ufffd"`), around("a"), itself("a"), &formed{Bytes: "\xff"}}, map[int]string{1: "x"}, []byte("\xff"), uint64(1 << 63), []any{nil, "\ufffd"}, `\ufffd`, time.Time{},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.Encode(v); err != nil || string(got) != string(want) {
			t.Errorf("%#v: %s, %v; want %s", v, got, err, want)
		}
	}
	if _, err := wire.Encode(func() {}); err == nil {
		t.Error("a function has a JSON form")
	}
}
