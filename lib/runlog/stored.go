package runlog

import (
	"bytes"
	"encoding/binary"

	"github.com/belfry-scheduler/belfry/lib/record"
)

// What is stored of a log begins with this, and a record follows. A log of a version before is its text alone.
var begins = []byte("\x00belfry log\n")

// stored is the record.
type stored struct {
	Attempt  int    `cbor:"1,keyasint,omitempty"`
	Error    string `cbor:"2,keyasint,omitempty"`
	Earlier  string `cbor:"3,keyasint,omitempty"`
	Head     []byte `cbor:"4,keyasint,omitempty"`
	Tail     []byte `cbor:"5,keyasint,omitempty"`
	Gap      int64  `cbor:"6,keyasint,omitempty"`
	GapLines int64  `cbor:"7,keyasint,omitempty"`
	Marks    []byte `cbor:"8,keyasint,omitempty"` // of each the distance to the one before, in bytes and in ms, as unsigned varints
}

// Encode gives the stored form.
func (l Log) Encode() ([]byte, error) {
	data, err := record.Encode(stored{Attempt: l.Attempt, Error: l.Error, Earlier: l.Earlier, Head: l.head, Tail: l.tail, Gap: l.gap, GapLines: l.gapLines, Marks: packed(l.marks)})
	if err != nil {
		return nil, err
	}
	return append(begins[:len(begins):len(begins)], data...), nil
}

// Decode reads what is stored. What has another form is the text of a log.
func Decode(data []byte) Log {
	packed, is := bytes.CutPrefix(data, begins)
	var s stored
	if !is || record.Decode(packed, &s) != nil {
		return Plain(data)
	}
	l := Log{Attempt: s.Attempt, Error: s.Error, Earlier: s.Earlier, head: s.Head, tail: s.Tail, gap: s.Gap, gapLines: s.GapLines}
	var ok bool
	if l.marks, ok = unpacked(s.Marks); !ok || !l.isSound() {
		return Plain(data)
	}
	return l
}

// isSound tells whether the parts of a log that somebody else has made fit together.
func (l Log) isSound() bool {
	switch {
	case l.gap < 0 || l.gap > longest || l.gapLines < 0 || l.gapLines > l.gap:
		return false
	case l.gap == 0 && len(l.tail) > 0, l.Attempt < 0:
		return false
	case len(l.marks) == 0:
		return true
	}
	first := int64(0)
	if len(l.head) == 0 {
		first = l.tailBegins()
	}
	return l.marks[0].at <= first && l.marks[len(l.marks)-1].at < l.Written()
}

// longest is a bound for positions, far beyond what can be written.
const longest = 1 << 60

func packed(marks []mark) []byte {
	var out []byte
	var before mark
	for _, m := range marks {
		out = binary.AppendUvarint(out, uint64(m.at-before.at)) //nolint:gosec // marks go up
		out = binary.AppendUvarint(out, uint64(m.ms-before.ms)) //nolint:gosec // likewise
		before = m
	}
	return out
}

func unpacked(data []byte) (marks []mark, ok bool) {
	var last mark
	for len(data) > 0 {
		var steps [2]uint64
		for i := range steps {
			step, n := binary.Uvarint(data)
			if n <= 0 || step > longest {
				return nil, false
			}
			steps[i], data = step, data[n:]
		}
		if len(marks) > 0 && steps[0] == 0 {
			return nil, false
		}
		last = mark{last.at + int64(steps[0]), last.ms + int64(steps[1])} //nolint:gosec // bounded above
		if last.at > longest || last.ms > longest {
			return nil, false
		}
		marks = append(marks, last)
	}
	return marks, true
}
