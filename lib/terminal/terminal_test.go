package terminal_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// hostile are texts that do something to a terminal, or to who reads it.
var hostile = []string{
	"\x1b]0;title\x07", "\x1b]52;c;cm0=\x1b\\", "\x1b[2J\x1b[1A", "\x1b[6n", "\x1bP+q544e\x1b\\", "\x1bc", "\x1b(0", "\x08\x08\x08rm", "a\x00b\x7f",
	"\u009b2J", "\u009d0;t\u009c", "\u0090x\u009c", "\u0085", "\u202eevil\u202c", "\u2066a\u2069", "a\u200fb\u200e", "\u061c", "a\u2028b\u2029c",
}

func TestNothingActs(t *testing.T) {
	for _, text := range hostile {
		for name, got := range map[string]string{"line": terminal.Line(text), "text": terminal.Text(text), "log": logged(t, text)} {
			if strings.ContainsFunc(got, terminal.Acts) {
				t.Errorf("%s: %q is shown as %q", name, text, got)
			}
		}
		written, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := terminal.Escape(written)
		var back string
		if err := json.Unmarshal(escaped, &back); err != nil || back != text || strings.ContainsFunc(string(escaped), terminal.Acts) {
			t.Errorf("%q is written as %s, and read as %q, %v", text, escaped, back, err)
		}
	}
	for _, text := range []string{"plain", "ä 日本 🎉", "a\tb\nc"} {
		if got := terminal.Text(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if got := terminal.Text("\x9b2J"); got != "\uFFFD2J" {
		t.Errorf("a control of another code is shown as %q", got)
	}
}

func logged(t *testing.T, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	log := terminal.NewLog(&out)
	for _, part := range parts {
		if n, err := log.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := log.End(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A log comes from whoever writes jobs, and the terminal is an operator's.
func TestALogKeepsLinesAndColoursAlone(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\tä 50%\r100%\n":  "plain\n\tä 50%\r100%\n",
		"\x1b[31mred\x1b[0m x":    "\x1b[31mred\x1b[0m x",
		"\x1b[1;38:5:9mx\ny":      "\x1b[1;38:5:9mx\x1b[0m\ny",
		"\x1b[8mhidden":           "\x1b[8mhidden\x1b[0m",
		"\x1b[0;31mred":           "\x1b[0;31mred\x1b[0m",
		"\x1b]0;title\x07":        "\uFFFD]0;title\uFFFD",
		"\x1b]52;c;cm0=\x1b\\":    "\uFFFD]52;c;cm0=\uFFFD\\",
		"\x1b[2J\x1b[1A\x1b[?25l": "\uFFFD[2J\uFFFD[1A\uFFFD[?25l",
		"\x1b[31":                 "\uFFFD[31",
		"\u009b2J":                "\uFFFD2J",
		"\u009b31mred":            "\uFFFD31mred",
		"\x9b2J":                  "\uFFFD2J",
		"a\u202eb\x00":            "a\uFFFDb\uFFFD",
		"half \xc3":               "half \uFFFD",
	} {
		if got := logged(t, text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct {
		parts []string
		want  string
	}{
		{[]string{"half \xc3", "\xa4 done"}, "half ä done"},
		{[]string{"\xc2", "\x9b2J"}, "\uFFFD2J"},
		{[]string{"\x1b", "[3", "1mred", " more"}, "\x1b[31mred\x1b[0m more"},
		{[]string{"\x1b[", "2J"}, "\uFFFD[2J"},
		{[]string{"\x1b[" + strings.Repeat("1;", 200), "2J"}, "\uFFFD[" + strings.Repeat("1;", 200) + "2J"},
	} {
		if got := logged(t, c.parts...); got != c.want {
			t.Errorf("%q are shown as %q, want %q", c.parts, got, c.want)
		}
	}
}

var (
	colours = regexp.MustCompile(`^\x1b\[[0-9;:]*m`)
	ends    = regexp.MustCompile(`^\x1b\[0*m`)
)

// FuzzLog cuts a text in two anywhere: what is shown holds no control but those of colours, and is UTF-8.
func FuzzLog(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		got := logged(t, text[:at], text[at:])
		if !utf8.ValidString(got) {
			t.Errorf("%q is shown as %q", text, got)
		}
		for i, r := range got {
			if r == 0x1b && !colours.MatchString(got[i:]) || terminal.Acts(r) && !strings.ContainsRune("\x1b\n\r\t", r) {
				t.Fatalf("%q is shown as %q", text, got)
			}
		}
		if at := strings.LastIndex(got, "\x1b["); at >= 0 && !ends.MatchString(got[at:]) {
			t.Errorf("%q leaves colours: %q", text, got)
		}
	})
}
