package invalid_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func TestBrokenTextIsFound(t *testing.T) {
	for _, c := range []struct{ text, field, got string }{
		{`"\ud800"`, "", `\ud800`},
		{`"\uDFFF"`, "", `\uDFFF`},
		{`{"a":"x\ud83dx"}`, "a", `\ud83d`},
		{`{"a":"\ud83d\u0041"}`, "a", `\ud83d`},
		{`{"a":"\ud83d\ud83d\ude00"}`, "a", `\ud83d`},
		{`{"a":"\ude00\ud83d"}`, "a", `\ude00`},
		{`{"a":"\ud83d\\ude00"}`, "a", `\ud83d`},
		{`{"ok":"\ud83d\ude00","a": [1, [], {"b" : "\udc00"}]}`, "a[2].b", `\udc00`},
		{`{"a":{"\ud800":1}}`, `a.\ud800`, `\ud800`},
		{`[[],{},["x","\udbff"]]`, "[2][1]", `\udbff`},
		{`{"a":[{"b":1,"c":[]},"\ud800"],"d":2}`, "a[1]", `\ud800`},
		{"{\"a\":\"\xff\"}", "a", `\xff`},
		{"{\"a\xff\":1}", "a?", `\xff`},
		{"[\"\xed\xa0\x80\"]", "[0]", `\xed`}, // a surrogate in UTF-8's manner
		{"\"\xf0\x9f\x98\"", "", `\xf0`},
	} {
		b := invalid.BrokenText([]byte(c.text))
		if b == nil || b.Field != c.field || b.Got != c.got || !strings.HasPrefix(c.text[b.Offset:], strings.Replace(c.got, `\x`, "", 1)) && len(c.got) == 6 {
			t.Errorf("%s: %+v, want %s of %s", c.text, b, c.got, c.field)
		}
	}
	for _, text := range []string{`"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"\\ud800"`, `"\\\\ud800"`, `"\ufffd"`, "\"\ufffd\"", `"\u0000"`, `{}`, `[]`, `1`, `{"\"\ud83d\ude00":[",:{}[]"]}`, `"\ud7ff\ue000"`, " [ ] "} {
		if b := invalid.BrokenText([]byte(text)); b != nil {
			t.Errorf("%s: %+v", text, b)
		}
	}
}

// However deep a text is nested, it is looked through once, and its path is cut.
func TestBrokenTextIsFoundInTheDeep(t *testing.T) {
	deep := strings.Repeat(`{"member":[`, 5000) + `"\ud800"` + strings.Repeat("]}", 5000)
	b := invalid.BrokenText([]byte(deep))
	if b == nil || !strings.HasPrefix(b.Field, "member[0].member[0]") || len(b.Err().Error()) > 1000 {
		t.Errorf("%+v", b)
	}
}

func FuzzBrokenTextIsWhatDecodingWouldChange(f *testing.F) {
	for _, text := range []string{`"\ud800"`, `{"a":["\ud83d\ude00"]}`, "\"\xff\"", `{"\udc00":1}`, `"\ufffd"`, `"\u005cud800"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		// Decoding puts U+FFFD where something was broken, and nowhere else unless it stood there.
		stood := strings.Contains(strings.ToLower(string(text)), `\ufffd`) || strings.Contains(string(text), "\ufffd")
		again, err := json.Marshal(value)
		if err != nil || stood {
			return
		}
		b := invalid.BrokenText(text)
		if changed := strings.Contains(string(again), "\ufffd"); b == nil && changed {
			t.Errorf("%q decodes as %s", text, again)
		}
		if b != nil && (b.Offset >= len(text) || !utf8.ValidString(b.Field)) {
			t.Errorf("%q: %+v", text, b)
		}
	})
}
