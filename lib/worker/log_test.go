package worker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// A log is cut between two characters, wherever its bound falls and however it was written, and what was shown of it before is its beginning.
func TestALogIsCutBetweenTwoCharacters(t *testing.T) {
	for _, text := range []string{"0123456789abcdef", "äöüäöüäöü", "日本語日本語日本語", "a😀b😀c😀d😀", "\xff\xfe\xfd0123456789", "0\xe6\x97x日本語日本語", "e\u0301e\u0301e\u0301e\u0301"} {
		for limit := range len(text) + 2 {
			for step := 1; step <= len(text); step++ {
				l := &cappedLog{limit: limit}
				var shown [][]byte
				for at := 0; at < len(text); at += step {
					if n, err := l.Write([]byte(text[at:min(len(text), at+step)])); err != nil || n == 0 {
						t.Fatal(n, err)
					}
					shown = append(shown, l.soFar())
				}
				all := string(l.bytes())
				for _, one := range shown {
					if !strings.HasPrefix(all, string(one)) {
						t.Fatalf("%q with bound %d by %d: %q was shown of %q", text, limit, step, one, all)
					}
				}
				kept, note, cut := strings.Cut(all, "\n[cut here: ")
				var missing int
				if _, err := fmt.Sscanf(note, "%d", &missing); cut != (err == nil) || len(kept)+missing != len(text) || !strings.HasPrefix(text, kept) || cut != (limit < len(text)) {
					t.Fatalf("%q with bound %d by %d: %q", text, limit, step, all)
				}
				if utf8.ValidString(text) && !utf8.ValidString(kept) || len(kept) < min(len(text), limit-utf8.UTFMax+1) || len(kept) > limit {
					t.Fatalf("%q with bound %d by %d keeps %q", text, limit, step, kept)
				}
			}
		}
	}
	l := &cappedLog{limit: 4}
	_, _ = l.Write([]byte("日"))
	_, _ = l.Write([]byte("本"))
	if got := l.bytes(); !bytes.Equal(got, []byte("日\n[cut here: 3 more bytes were logged]\n")) {
		t.Errorf("the log is %q", got)
	}
}
