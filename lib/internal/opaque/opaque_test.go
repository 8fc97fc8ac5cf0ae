package opaque_test

import (
	"bytes"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/internal/opaque"
)

func TestOnlyWhatWasWrittenIsTaken(t *testing.T) {
	for _, raw := range [][]byte{{}, {0}, {1, 2}, {1, 2, 3}, {0xff, 0xfe, 0xfd, 0xfc}, bytes.Repeat([]byte("ab"), 300)} {
		text := opaque.Text(raw)
		if got, ok := opaque.Bytes(text); !ok || !bytes.Equal(got, raw) {
			t.Errorf("%q gives %v %v, want %v", text, got, ok, raw)
		}
		for at := range len(text) + 1 {
			for _, more := range []string{"\n", "\r", "\r\n", " ", "\t", "=", "\x00", "A\n", "."} {
				changed := text[:at] + more + text[at:]
				if got, ok := opaque.Bytes(changed); ok {
					t.Errorf("%q is taken as %v", changed, got)
				}
			}
		}
	}
	// Each byte has one text: the four bits behind it are zero.
	for _, text := range []string{"AB", "AP", "AAB", "A", "AA==", "AA\n"} {
		if got, ok := opaque.Bytes(text); ok {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
