package main

import "testing"

// A log comes from whoever writes jobs, and the terminal is an operator's.
func TestALogDoesNothingToATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\tä 50%\r100%\n":             "plain\n\tä 50%\r100%\n",
		"\x1b[31mred\x1b[0m \x1b[1;38:5:9mx": "\x1b[31mred\x1b[0m \x1b[1;38:5:9mx",
		"\x1b]0;title\x07":                   "\uFFFD]0;title\uFFFD",
		"\x1b]52;c;cm0=\x1b\\":               "\uFFFD]52;c;cm0=\uFFFD\\",
		"\x1b[2J\x1b[1A":                     "\uFFFD[2J\uFFFD[1A",
		"\x1b[31":                            "\uFFFD[31",
		"\u009b2J":                           "\uFFFD2J",
		"a\u202eb\x00":                       "a\uFFFDb\uFFFD",
		"half \xc3":                          "half \xc3",
	} {
		if got := string(harmless([]byte(text))); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
