package expression

import (
	"bytes"
	"encoding/json"
)

// MaxHeld is how much memory values that are made of JSON may take, in bytes, in one evaluation. JSON is small for what it says: [0,0,0] takes thirty
// times as much as a value, and {"a":0} sixty times.
const MaxHeld = 64 << 20

// What a value takes beside the bytes of its text, at most: where it stands, with the room that an array or object keeps for more, and what points to it.
const (
	perHeld   = 64
	perObject = 384 // its own room, which is for eight names at once
)

var errHeld = failed("it is too large to compute with: the values of all that is read take more than %d MiB", MaxHeld>>20)

// Decode reads JSON into what expressions read. Numbers stay as they are written. What the values take is paid for before they are made. The error is a
// *Failure.
func (b *Budget) Decode(text []byte) (any, error) {
	if !json.Valid(text) {
		return nil, failed("it is no JSON: %s", json.Unmarshal(text, new(any)))
	}
	bytes, err := weigh(text)
	if err != nil {
		return nil, err
	}
	if bytes > MaxHeld-b.held {
		return nil, b.stop(errHeld)
	}
	b.held += bytes
	return decoded(text)
}

// Release tells that nothing is held any more of what was decoded: another evaluation begins, which goes by what is left of steps and work.
func (b *Budget) Release() { b.held = 0 }

// Decode reads JSON as a budget of its own would.
func Decode(text []byte) (any, error) { return new(Budget).Decode(text) }

func decoded(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, failed("it is no JSON: %s", err)
	}
	return v, nil
}

// weigh gives what the values of JSON, which is valid, are going to take in memory. It refuses what no expression can be let at.
func weigh(text []byte) (bytes int, err error) {
	depth := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		begins := i
		switch {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			bytes += perHeld + i - begins
		case c == '-' || c >= '0' && c <= '9':
			for i+1 < len(text) && inNumber(text[i+1]) {
				i++
			}
			if i+1-begins > maxDigits {
				return 0, failed("it has a number of more than %d digits", maxDigits)
			}
			bytes += perHeld + i + 1 - begins
		case c == 't' || c == 'n': // true, null
			bytes += perHeld
			i += 3
		case c == 'f': // false
			bytes += perHeld
			i += 4
		case c == '[' || c == '{':
			if depth++; depth > maxNested/2 {
				return 0, failed("it is nested more than %d levels deep", maxNested/2)
			}
			bytes += perHeld
			if c == '{' {
				bytes += perObject
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return bytes, nil
}

func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}
