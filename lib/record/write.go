package record

import (
	"encoding/binary"
	"slices"
)

// Fields is a record that is being written by hand, for those that are written with each step of a run. It gives the bytes that
// Encode gives for the struct, at a small part of what reflection costs; the tests of the structs hold the two against each other.
//
// Fields are written in the order of their numbers. What is zero is left out, as omitempty has it, by all but Always, AlwaysUint and AlwaysText.
type Fields struct {
	out   []byte
	head  int // where the map begins
	count int
}

// Write begins a record. It is written to room while it fits there, which may so lie on the caller's stack.
func Write(room []byte) Fields {
	return open(append(room[:0], Format))
}

// Stored gives the record, in memory of its own.
func (f Fields) Stored() []byte {
	out := f.end()
	stored := make([]byte, len(out))
	copy(stored, out)
	return stored
}

// The kinds of values, as they stand in the highest three bits of their first byte.
const (
	kindUint  = 0 << 5
	kindMinus = 1 << 5
	kindBytes = 2 << 5
	kindText  = 3 << 5
	kindArray = 4 << 5
	kindMap   = 5 << 5

	yes = 0xf5 // what is true
)

// inHead is how large a number is at most that stands in the first byte itself.
const inHead = 23

func open(out []byte) Fields {
	return Fields{out: append(out, kindMap), head: len(out)}
}

// end closes the map: only now is it known how many fields it has.
func (f Fields) end() []byte {
	if f.count <= inHead {
		f.out[f.head] |= byte(f.count)
		return f.out
	}
	var room [9]byte
	return slices.Replace(f.out, f.head, f.head+1, appendHead(room[:0], kindMap, uint64(f.count))...)
}

func appendHead(out []byte, kind byte, n uint64) []byte {
	switch {
	case n <= inHead:
		return append(out, kind|byte(n))
	case n < 1<<8:
		return append(out, kind|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(out, kind|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(out, kind|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(out, kind|27), n)
}

func appendNumber(out []byte, number uint8) []byte {
	if number <= inHead {
		return append(out, number)
	}
	return append(out, kindUint|24, number)
}

// field writes a field's number and the head of its value.
func (f Fields) field(number uint8, kind byte, n uint64) Fields {
	f.out = appendHead(appendNumber(f.out, number), kind, n)
	f.count++
	return f
}

// Int writes a number.
func (f Fields) Int(number uint8, n int64) Fields {
	if n == 0 {
		return f
	}
	return f.Always(number, n)
}

// Always writes a number, 0 as well.
func (f Fields) Always(number uint8, n int64) Fields {
	if n < 0 {
		return f.field(number, kindMinus, uint64(-1-n))
	}
	return f.field(number, kindUint, uint64(n))
}

// Uint writes a number that has no sign.
func (f Fields) Uint(number uint8, n uint64) Fields {
	if n == 0 {
		return f
	}
	return f.AlwaysUint(number, n)
}

// AlwaysUint writes a number that has no sign, 0 as well.
func (f Fields) AlwaysUint(number uint8, n uint64) Fields { return f.field(number, kindUint, n) }

// Text writes a text.
func (f Fields) Text(number uint8, text string) Fields {
	if text == "" {
		return f
	}
	return f.AlwaysText(number, text)
}

// AlwaysText writes a text, an empty one as well.
func (f Fields) AlwaysText(number uint8, text string) Fields {
	f = f.field(number, kindText, uint64(len(text)))
	f.out = append(f.out, text...)
	return f
}

// Bytes writes bytes.
func (f Fields) Bytes(number uint8, data []byte) Fields {
	if len(data) == 0 {
		return f
	}
	f = f.field(number, kindBytes, uint64(len(data)))
	f.out = append(f.out, data...)
	return f
}

// Bool writes what is true.
func (f Fields) Bool(number uint8, is bool) Fields {
	if !is {
		return f
	}
	f.out = append(appendNumber(f.out, number), yes)
	f.count++
	return f
}

// Open begins the fields of a struct that is a field of this one; Close ends them.
func (f Fields) Open(number uint8) Fields {
	return open(appendNumber(f.out, number))
}

// Close ends the fields that Open began.
func (f Fields) Close(inner Fields) Fields {
	f.out = inner.end()
	f.count++
	return f
}

// Array begins a field of n structs: each follows between OpenElement and CloseElement.
func (f Fields) Array(number uint8, n int) Fields {
	return f.field(number, kindArray, uint64(n))
}

// OpenElement begins the fields of the next struct of an array.
func (f Fields) OpenElement() Fields { return open(f.out) }

// CloseElement ends them.
func (f Fields) CloseElement(inner Fields) Fields {
	f.out = inner.end()
	return f
}
