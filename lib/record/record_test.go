package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
)

type sample struct {
	Name string            `cbor:"1,keyasint,omitempty"`
	At   *time.Time        `cbor:"2,keyasint,omitempty"`
	Tags map[string]string `cbor:"3,keyasint,omitempty"`
}

func TestARecordComesBackAsItWas(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 123e6, time.FixedZone("", 3600))
	stored, err := record.Encode(sample{Name: "n", At: &at, Tags: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	var got sample
	if err := record.Decode(stored, &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "n" || !got.At.Equal(at) || got.At.Location() != time.UTC || got.Tags["a"] != "b" {
		t.Fatalf("got %+v at %v", got, got.At)
	}
}

// TestFault53 an old reader: fields that it does not know are skipped, a format that it does not know is refused.
func TestFault53_NewerRecordIsToleratedOrRefused(t *testing.T) {
	stored, err := record.Encode(map[int]any{1: "n", 99: []int{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	var got sample
	if err := record.Decode(stored, &got); err != nil || got.Name != "n" {
		t.Fatalf("a record with an unknown field: %+v, %v", got, err)
	}
	stored[0] = record.Format + 1
	if err := record.Decode(stored, &got); !errors.Is(err, record.ErrNewer) {
		t.Fatalf("a record of a newer format: %v, want ErrNewer", err)
	}
}

func TestBrokenRecordsAreRefused(t *testing.T) {
	for name, stored := range map[string][]byte{
		"Empty": {}, "NoFormat": {0, 0xa0}, "Torn": {1, 0xa1, 1}, "NoMap": {1, 0x01}, "Trailing": {1, 0xa0, 0xa0},
	} {
		t.Run(name, func(t *testing.T) {
			var got sample
			if err := record.Decode(stored, &got); !errors.Is(err, record.ErrBroken) {
				t.Fatalf("got %v, want ErrBroken", err)
			}
		})
	}
}

type colour uint8

func (c colour) String() string { return fmt.Sprintf("colour %d", c) }

// place is stored as bytes.
type place [2]byte

func (p place) String() string                 { return fmt.Sprintf("place %x", p[:]) }
func (p place) MarshalBinary() ([]byte, error) { return p[:], nil }
func (p *place) UnmarshalBinary(stored []byte) error {
	if len(stored) != len(p) {
		return errors.New("no place")
	}
	copy(p[:], stored)
	return nil
}

type shown struct {
	Name    string           `json:"called,omitempty" cbor:"1,keyasint"`
	NextAt  int64            `cbor:"2,keyasint"`
	Edits   int64            `cbor:"3,keyasint"`
	Colour  colour           `cbor:"4,keyasint"`
	Inner   *shown           `cbor:"5,keyasint,omitempty"`
	Many    []shown          `cbor:"6,keyasint,omitempty"`
	Cursors [2]int64         `cbor:"7,keyasint,omitzero"`
	Ends    map[string]int64 `cbor:"8,keyasint,omitempty"`
	Data    []byte           `cbor:"9,keyasint,omitempty"`
	Token   uint64           `cbor:"10,keyasint,omitempty"`
	Place   place            `cbor:"11,keyasint,omitzero"`
}

func TestARecordIsExplained(t *testing.T) {
	const ms, at = 1795251600123, "2026-11-21T09:00:00.123Z (1795251600123)"
	for name, c := range map[string]struct {
		stored, like any
		want         string
	}{
		"Names":        {shown{Name: "n", NextAt: ms, Edits: 3, Colour: 2}, shown{}, `{"called":"n","colour":"colour 2","edits":3,"next_at":"` + at + `"}`},
		"Pointer":      {shown{Inner: &shown{NextAt: ms}}, shown{}, `{"called":"","colour":"colour 0","edits":0,"inner":{"called":"","colour":"colour 0","edits":0,"next_at":"` + at + `"},"next_at":0}`},
		"Slice":        {map[int]any{6: []any{map[int]any{4: 1}}}, shown{}, `{"many":[{"colour":"colour 1"}]}`},
		"Array":        {map[int]any{7: []int64{ms, 5}}, shown{}, `{"cursors":["` + at + `",5]}`},
		"Map":          {map[int]any{8: map[string]int64{"a": ms}}, shown{}, `{"ends":{"a":"` + at + `"}}`},
		"DataOfJSON":   {map[int]any{9: []byte(`{"a":1}`)}, shown{}, `{"data":{"a":1}}`},
		"DataOfText":   {map[int]any{9: []byte(`text`)}, shown{}, `{"data":"text"}`},
		"DataOfBytes":  {map[int]any{9: []byte{0xff}}, shown{}, `{"data":"/w=="}`},
		"Bytes":        {shown{Place: place{0xab, 1}}, shown{}, `{"called":"","colour":"colour 0","edits":0,"next_at":0,"place":"place ab01"}`},
		"OtherBytes":   {map[int]any{11: []byte{0xff}}, shown{}, `{"place":"/w=="}`},
		"NoTime":       {map[int]any{10: ms, 2: int64(1) << 60}, shown{}, `{"next_at":1152921504606846976,"token":1795251600123}`},
		"UnknownField": {map[int]any{99: map[int]any{1: ms}}, shown{}, `{"99":{"1":1795251600123}}`},
		"Misfit":       {map[int]any{4: 256, 2: "x", 1: 3, 5: 7, 6: map[int]any{1: 2}}, shown{}, `{"called":3,"colour":256,"inner":7,"many":{"1":2},"next_at":"x"}`},
		"UnknownType":  {shown{Name: "n"}, nil, `{"1":"n","2":0,"3":0,"4":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := record.Encode(c.stored)
			if err != nil {
				t.Fatal(err)
			}
			value, err := record.Explain(stored, c.like)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(value); err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
			stored[0] = record.Format + 1
			if value, err = record.Explain(stored, c.like); !errors.Is(err, record.ErrNewer) {
				t.Errorf("of a newer format: %v, %v, want ErrNewer", value, err)
			}
		})
	}
}
