package control_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/control"
)

func TestTheTailOfALogBeginsWithALine(t *testing.T) {
	long := strings.Repeat("é", 50)
	for name, c := range map[string]struct {
		text  string
		bytes int
		want  string
	}{
		"Empty":              {"", 10, ""},
		"Whole":              {"one\ntwo\n", 8, "one\ntwo\n"},
		"MoreThanThereIs":    {"one\ntwo\n", 100, "one\ntwo\n"},
		"InALine":            {"one\ntwo\nthree\n", 8, "three\n"},
		"AtALine":            {"one\ntwo\nthree\n", 10, "two\nthree\n"},
		"LineBreakFirst":     {"one\ntwo\n", 5, "two\n"},
		"LineThatHasNoEnd":   {"one\ntwo", 5, "two"},
		"WithinALongLine":    {"a long line\n", 5, "line\n"},
		"WithinTheOnlyLine":  {"a long line", 4, "line"},
		"WithACharacter":     {long, 5, "éé"},
		"CharacterAndBreak":  {long + "\n", 4, "é\n"},
		"BytesThatAreNoText": {strings.Repeat("\x80", 20), 10, strings.Repeat("\x80", 7)},
		"LessThanACharacter": {"日", 1, ""},
		"EmptyLines":         {"a\n\n\n", 2, "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			log := control.LogText{Text: []byte(c.text)}
			if got := c.text[log.Tail(c.bytes):]; got != c.want {
				t.Errorf("the last %d of %q: got %q, want %q", c.bytes, c.text, got, c.want)
			}
		})
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree"), 7)
	f.Add([]byte("日本\n\xff"), 3)
	f.Fuzz(func(t *testing.T, text []byte, bytes int) {
		if bytes < 1 {
			return
		}
		at := control.LogText{Text: text}.Tail(bytes)
		switch {
		case at < 0 || at > len(text) || len(text)-at > bytes:
			t.Errorf("the last %d of %q begin at %d", bytes, text, at)
		case utf8.Valid(text) && !utf8.Valid(text[at:]):
			t.Errorf("the last %d of %q begin within a character, at %d", bytes, text, at)
		case bytes > utf8.UTFMax && at == len(text) && len(text) > 0:
			t.Errorf("the last %d of %q are nothing", bytes, text)
		}
	})
}
