package api

import (
	"bytes"
	"encoding/json"
)

// between returns where the next value, name or end stands.
func between(text json.RawMessage, at int) int {
	for {
		switch text[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			at++
		default:
			return at
		}
	}
}

// behind returns where the value that begins at a place ends.
func behind(text json.RawMessage, at int) int {
	depth := 0
	for ; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 { // the end of what the number, true, false or null stands in
				return at
			}
		case ' ', '\t', '\r', '\n', ',', ':':
			if depth == 0 {
				return at
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return at + 1
		}
	}
	return at
}

// textOf reads a JSON string.
func textOf(quoted json.RawMessage) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // valid
	return text
}
