package record

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Scanner reads a record by hand, for those that are read with each step of a run. It knows the form that a Writer gives and no
// other: fields in the order of their numbers, each of the type that the reader asks for, none that it does not know. All that differs,
// which may well be a good record of another version, ends the scan, and is for Decode to judge: see Whole.
type Scanner struct {
	rest   []byte
	failed bool
}

// Scan begins to read a record. The bytes are not kept.
func Scan(stored []byte) Scanner {
	if len(stored) == 0 || stored[0] != Format {
		return Scanner{failed: true}
	}
	return Scanner{rest: stored[1:]}
}

// Whole tells that all of the record was read, and nothing was met that is not for a Scanner. Where it is false, what was read is
// void, and Decode is to be asked.
func (s *Scanner) Whole() bool { return !s.failed && len(s.rest) == 0 }

// Fail ends the scan: for a field that the reader does not know, or a value that it does not take.
func (s *Scanner) Fail() { s.failed, s.rest = true, nil }

// Struct is one whose fields are being read: for fields := s.Struct(); s.Next(&fields); { switch fields.Number ... }.
type Struct struct {
	Number uint8 // of the field whose value is next
	left   uint64
	begun  bool
}

// Struct begins a struct.
func (s *Scanner) Struct() Struct { return Struct{left: s.head(kindMap)} }

// Next goes to the next field; false behind the last.
func (s *Scanner) Next(fields *Struct) bool {
	if s.failed || fields.left == 0 {
		return false
	}
	number := s.head(kindUint)
	if number > math.MaxUint8 || fields.begun && uint8(number) <= fields.Number {
		s.Fail()
	}
	fields.Number, fields.left, fields.begun = uint8(number), fields.left-1, true
	return !s.failed
}

// maxScanned is how many elements an array has at most that is read by hand: the memory for them is taken before they are seen.
const maxScanned = 64

// Array begins a field of structs, and gives how many follow.
func (s *Scanner) Array() int {
	n := s.head(kindArray)
	if n == 0 || n > maxScanned {
		s.Fail()
		return 0
	}
	return int(n)
}

// Int reads a number.
func (s *Scanner) Int() int64 {
	if len(s.rest) > 0 && s.rest[0]&kinds == kindMinus {
		return -1 - int64(s.atMost(kindMinus, math.MaxInt64))
	}
	return int64(s.atMost(kindUint, math.MaxInt64))
}

// Uint reads a number that has no sign, of at most so much.
func (s *Scanner) Uint(most uint64) uint64 { return s.atMost(kindUint, most) }

func (s *Scanner) atMost(kind byte, most uint64) uint64 {
	n := s.head(kind)
	if n > most {
		s.Fail()
		return 0
	}
	return n
}

// Bool reads what is true: what is false is not written.
func (s *Scanner) Bool() bool {
	if len(s.rest) == 0 || s.rest[0] != yes {
		s.Fail()
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// Text reads a text. It is part of the record's bytes, for the caller to copy.
func (s *Scanner) Text() []byte {
	text := s.take(s.head(kindText))
	if !utf8.Valid(text) {
		s.Fail()
		return nil
	}
	return text
}

// Bytes reads bytes, of which there are some. They are part of the record's, for the caller to copy.
func (s *Scanner) Bytes() []byte {
	n := s.head(kindBytes)
	if n == 0 {
		s.Fail()
	}
	return s.take(n)
}

func (s *Scanner) take(n uint64) []byte {
	if n > uint64(len(s.rest)) {
		s.Fail()
		return nil
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

// kinds are the bits of a value's first byte that tell its kind.
const kinds = 7 << 5

// head reads the head of a value that must be of a kind.
func (s *Scanner) head(kind byte) uint64 {
	if len(s.rest) == 0 || s.rest[0]&kinds != kind {
		s.Fail()
		return 0
	}
	short := s.rest[0] &^ kinds
	if short <= inHead {
		s.rest = s.rest[1:]
		return uint64(short)
	}
	if short > 27 {
		s.Fail()
		return 0
	}
	size := 1 << (short - 24)
	if len(s.rest) <= size {
		s.Fail()
		return 0
	}
	number := s.rest[1 : 1+size]
	s.rest = s.rest[1+size:]
	switch size {
	case 1:
		return uint64(number[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(number))
	case 4:
		return uint64(binary.BigEndian.Uint32(number))
	}
	return binary.BigEndian.Uint64(number)
}
