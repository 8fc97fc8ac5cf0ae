// Package record is how items of the store are written: compact, quick, and versioned.
//
// A record is one byte of format, then CBOR (RFC 8949) of a struct whose fields are named by small integers. A reader
// skips fields that it does not know, so a format may grow by optional fields without a new number. A change that an old
// reader would damage by writing the record back gets the next format number: the old reader then refuses the record with
// ErrNewer instead of corrupting it (a rolling upgrade lets old workers meet new records).
//
// The tags of a struct are its form. Encode and Decode go by them and serve all records; the few that are written and read with each
// step of a run do the same by hand, with a Writer and a Scanner, at a small part of the cost. They have methods beside the struct, which
// recordtest holds against its tags; what a Scanner does not take, Decode judges.
package record

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Format is the newest record format that this build reads, and the one that it writes.
const Format = 1

// ErrNewer says that a newer Belfry wrote the record; this one must leave it as it is.
var ErrNewer = errors.New("record written by a newer version of Belfry")

// ErrBroken says that the bytes are no record.
var ErrBroken = errors.New("unreadable record")

var (
	encoder = must(cbor.EncOptions{
		Sort:          cbor.SortCoreDeterministic,
		ShortestFloat: cbor.ShortestFloat16,
		Time:          cbor.TimeRFC3339NanoUTC,
		OmitEmpty:     cbor.OmitEmptyGoValue,
	}.EncMode())
	decoder = must(cbor.DecOptions{MaxNestedLevels: 16}.DecMode())
)

func must[M any](mode M, err error) M {
	if err != nil {
		panic("record: " + err.Error()) // the options above are constants: a build that starts has good ones
	}
	return mode
}

// Encode gives the stored form of a record struct.
func Encode(v any) ([]byte, error) {
	body, err := encoder.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return append([]byte{Format}, body...), nil
}

// Decode reads a stored record into the struct that v points to.
func Decode(stored []byte, v any) error {
	if len(stored) == 0 || stored[0] == 0 {
		return ErrBroken
	}
	if stored[0] > Format {
		return fmt.Errorf("%w: format %d, this build knows %d", ErrNewer, stored[0], Format)
	}
	if err := decoder.Unmarshal(stored[1:], v); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}
