package run_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/run"
)

func TestPatternsOfErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Empty":              {"", ""},
		"NothingThatDiffers": {"handler: no such account", "handler: no such account"},
		"Number":             {"exit: exit code 1", "exit: exit code #"},
		"Negative":           {"got -5, want more", "got -#, want more"},
		"Unit":               {"took 30s of 1m30s and 12KB", "took # of # and #"},
		"Address":            {"dial tcp 10.0.0.1:80: connection refused", "dial tcp #: connection refused"},
		"AddressOfSixes":     {"dial tcp [2001:db8::1]:443: i/o timeout", "dial tcp [#]:#: i/o timeout"},
		"Port":               {"lookup db on db.example:5432: no such host", "lookup db on db.example:#: no such host"},
		"Instant":            {"since 2026-11-25T10:00:00.5Z late", "since # late"},
		"Version":            {"needs 1.2.3, has 1.10.0", "needs #, has #"},
		"List":               {"lines 1, 2, 30 and 4", "lines # and #"},
		"EndsWithSeparators": {"after 3, then: 4...", "after #, then: #..."},
		"Hexadecimal":        {"commit deadbeef, 0xCAFE, a1b2 and i-0abc12de", "commit # and i-#"},
		"WordsOfHexLetters":  {"a faded facade", "a faded facade"},
		"UUID":               {"request abcdabcd-abcd-abcd-abcd-abcdefabcdef failed", "request # failed"},
		"NoUUID":             {"abcdabcdx-abcd", "abcdabcdx-abcd"},
		"NumberedName":       {"host worker12 of shard3", "host worker# of shard#"},
		"DrawnAtRandom":      {"key AKx9Zq7Lm2Pw gone", "key # gone"},
		"RunID":              {"run report~0mi4lf3k0 ended", "run report~# ended"},
		"Quoted":             {`open "/tmp/a b": denied`, "open #: denied"},
		"QuotedInside":       {`Get "http://x/\"y\"?n=1": EOF`, "Get #: EOF"},
		"SingleQuoted":       {"table 'users' and `orders`", "table # and #"},
		"Apostrophe":         {"can't open the users' file", "can't open the users' file"},
		"QuotedApostrophe":   {"no 'don't' here", "no # here"},
		"QuoteOfNoEnd":       {`a 5" disk and 'so`, `a #" disk and 'so`},
		"CutInAQuote":        {`Get "http://example.org/a/very/lo…`, "Get #"},
		"CutInAWord":         {"the account is clos…", "the account is clos…"},
		"WhiteSpace":         {"a\t b\n\nc ", "a b c"},
		"OtherDigits":        {"Fehler ٣ und 七 in Straße९", "Fehler # und 七 in Straße#"},
		"Blanks":             {"issue #12, ## and #", "issue # and #"},
		"BrokenText":         {"a\xffb", "a?b"},
		"Long":               {strings.Repeat("word ", 40), strings.Repeat("word ", 19) + "wo…"},
		"LongLetters":        {strings.Repeat("é", 100), strings.Repeat("é", 48) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := run.Pattern(c.text); got != c.want {
				t.Errorf("%q: got %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// FuzzPattern: whatever an error says, its pattern is short text without digits, and other digits have no part in it.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"exit: exit code 1", `Get "http://10.0.0.1:80/x": dial`, "can't 'do' 0xdead", "a\xff…", `"…`, "abcdabcd-abcd-abcd-abcd-abcdefabcdef", "1, 2,,3::4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := run.Pattern(text)
		if len(got) > run.MaxPattern || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsDigit) {
			t.Errorf("%q: got %q, want at most %d bytes of text without digits", text, got, run.MaxPattern)
		}
		if strings.Contains(got, "##") || got != strings.TrimSpace(got) && len(got) < run.MaxPattern-len("…") {
			t.Errorf("%q: got %q, which is not as short as it can be", text, got)
		}
		if !utf8.ValidString(text) {
			return
		}
		other := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0' + (r-'0'+1)%10
			}
			return r
		}, text)
		if again := run.Pattern(other); again != got {
			t.Errorf("%q: got %q; with other digits, %q: %q", text, got, other, again)
		}
	})
}
