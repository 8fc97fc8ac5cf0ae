package record

import (
	"encoding/binary"
	"slices"
)

// Writer writes a record by hand, for those that are written with each step of a run. It gives the bytes that Encode gives for the
// struct, at a small part of what reflection costs; the tests of the structs hold the two against each other.
//
// Fields are written in the order of their numbers. What is zero is left out, as omitempty has it, by all but Always, AlwaysUint and
// AlwaysText. Its buffer is what is stored in the end, and a pointer to it is all that is passed on: runs are written on stacks that begin
// small, and cost more to grow than the writing.
type Writer struct {
	out   []byte
	head  int // where the map that is open begins
	count int // of its fields
}

// Write begins a record that will take about so many bytes.
func Write(size int) Writer {
	w := Writer{out: append(make([]byte, 0, size), Format)}
	w.open()
	return w
}

// Stored ends the record and gives it.
func (w *Writer) Stored() []byte {
	w.end()
	return w.out
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

func (w *Writer) open() {
	w.head, w.count = len(w.out), 0
	w.out = append(w.out, kindMap)
}

// end closes the map: only now is it known how many fields it has.
func (w *Writer) end() {
	if w.count <= inHead {
		w.out[w.head] |= byte(w.count)
		return
	}
	var room [9]byte
	w.out = slices.Replace(w.out, w.head, w.head+1, appendHead(room[:0], kindMap, uint64(w.count))...)
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

// field writes a field's number and the head of its value.
func (w *Writer) field(number uint8, kind byte, n uint64) {
	w.number(number)
	w.out = appendHead(w.out, kind, n)
}

func (w *Writer) number(number uint8) {
	w.out = appendHead(w.out, kindUint, uint64(number))
	w.count++
}

// Int writes a number.
func (w *Writer) Int(number uint8, n int64) {
	if n != 0 {
		w.Always(number, n)
	}
}

// Always writes a number, 0 as well.
func (w *Writer) Always(number uint8, n int64) {
	if n < 0 {
		w.field(number, kindMinus, uint64(-1-n))
		return
	}
	w.field(number, kindUint, uint64(n))
}

// Uint writes a number that has no sign.
func (w *Writer) Uint(number uint8, n uint64) {
	if n != 0 {
		w.AlwaysUint(number, n)
	}
}

// AlwaysUint writes a number that has no sign, 0 as well.
func (w *Writer) AlwaysUint(number uint8, n uint64) { w.field(number, kindUint, n) }

// Text writes a text.
func (w *Writer) Text(number uint8, text string) {
	if text != "" {
		w.AlwaysText(number, text)
	}
}

// AlwaysText writes a text, an empty one as well.
func (w *Writer) AlwaysText(number uint8, text string) {
	w.field(number, kindText, uint64(len(text)))
	w.out = append(w.out, text...)
}

// Bytes writes bytes.
func (w *Writer) Bytes(number uint8, data []byte) {
	if len(data) > 0 {
		w.field(number, kindBytes, uint64(len(data)))
		w.out = append(w.out, data...)
	}
}

// Bool writes what is true.
func (w *Writer) Bool(number uint8, is bool) {
	if is {
		w.number(number)
		w.out = append(w.out, yes)
	}
}

// Outer is a struct one of whose fields is being written.
type Outer struct{ head, count int }

// Open begins the fields of a struct that is a field of this one; Close ends them.
func (w *Writer) Open(number uint8) Outer {
	w.number(number)
	return w.Element()
}

// Array begins a field of n structs or texts: the fields of each struct follow between Element and Close, each text is a TextElement.
func (w *Writer) Array(number uint8, n int) { w.field(number, kindArray, uint64(n)) }

// Element begins the fields of the next struct of an array.
func (w *Writer) Element() Outer {
	outer := Outer{w.head, w.count}
	w.open()
	return outer
}

// TextElement writes the next text of an array.
func (w *Writer) TextElement(text string) {
	w.out = append(appendHead(w.out, kindText, uint64(len(text))), text...)
}

// Close ends the fields of a struct within another.
func (w *Writer) Close(outer Outer) {
	w.end()
	w.head, w.count = outer.head, outer.count
}
