package record_test

import (
	"errors"
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
