package invalid

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Broken is a text in JSON that is no sequence of characters. Whoever decodes it would put U+FFFD in the place of what is wrong.
type Broken struct {
	Field  string // path of the text, or of the name
	Offset int    // bytes before what is wrong
	Got    string // what is wrong: an escape such as \ud800, or a byte
}

// Want says what would be right.
func (b *Broken) Want() string {
	if strings.HasPrefix(b.Got, `\u`) {
		return `whole characters: \ud800 to \udfff only in pairs such as \ud83d\ude00`
	}
	return "text in UTF-8"
}

// Err gives it as the error of its field.
func (b *Broken) Err() error {
	return &Error{Field: cutTo(longestPath, b.Field), Got: b.Got, Want: b.Want()}
}

// BrokenText finds the first text in valid JSON that has half of a surrogate pair, or bytes that are not UTF-8; nil where there is
// none. It takes time in proportion to the text.
func BrokenText(text []byte) *Broken {
	if !bytes.Contains(text, []byte(`\u`)) && utf8.Valid(text) {
		return nil
	}
	var at path
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			at = append(at, step{object: text[i] == '{', naming: text[i] == '{'})
		case '}', ']':
			at = at[:len(at)-1]
		case ':':
			at[len(at)-1].naming = false
		case ',':
			last := &at[len(at)-1]
			last.index++
			last.naming = last.object
		case '"':
			end, wrong, size := quoted(text, i+1)
			if n := len(at) - 1; n >= 0 && at[n].naming {
				at[n].name = text[i : end+1]
			}
			if size > 0 {
				got := string(text[wrong : wrong+size])
				if size == 1 {
					got = fmt.Sprintf(`\x%02x`, text[wrong])
				}
				return &Broken{Field: at.String(), Offset: wrong, Got: got}
			}
			i = end
		}
	}
	return nil
}

// quoted looks through a JSON string from behind its quote. It returns where the closing quote is; or, with a size above 0, where the
// first thing that is wrong stands, and end as far as it has come.
func quoted(text []byte, from int) (end, wrong, size int) {
	for i := from; ; {
		switch c := text[i]; {
		case c == '"':
			return i, 0, 0
		case c == '\\' && text[i+1] == 'u':
			switch unit := hex(text[i+2:]); {
			case unit < 0xd800 || unit > 0xdfff:
				i += 6
			case unit < 0xdc00 && text[i+6] == '\\' && text[i+7] == 'u' && hex(text[i+8:])&^0x3ff == 0xdc00:
				i += 12
			default:
				return closing(text, i), i, 6
			}
		case c == '\\':
			i += 2
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				return closing(text, i), i, 1
			}
			i += n
		}
	}
}

// closing returns where the string ends in which i stands.
func closing(text []byte, i int) int {
	for ; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// hex reads four hex digits, which are there.
func hex(text []byte) uint64 {
	unit, _ := strconv.ParseUint(string(text[:4]), 16, 16)
	return unit
}

// path leads to a place in a text of JSON.
type path []step

// step is an object or array around the place.
type step struct {
	object bool
	naming bool   // the place is a name, or before one
	name   []byte // of the member, in quotes
	index  int    // of the entry
}

func (p path) String() string {
	var text strings.Builder
	for _, s := range p {
		switch {
		case !s.object:
			fmt.Fprintf(&text, "[%d]", s.index)
		case len(s.name) > 1:
			if text.Len() > 0 {
				text.WriteByte('.')
			}
			text.WriteString(Cut(string(bytes.ToValidUTF8(s.name[1:len(s.name)-1], []byte("?")))))
		}
		if text.Len() > longestPath {
			break
		}
	}
	return text.String()
}
