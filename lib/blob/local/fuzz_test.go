package local

import (
	"strings"
	"testing"
)

// FuzzNames takes anything as a part of a key, and as a name in a folder. A part has one name, which leads nowhere else and differs in
// more than the case of letters from that of any other part; a name is that of one part, or of none.
func FuzzNames(f *testing.F) {
	for _, text := range []string{"Report~0mi4lf3k0", "report", "a+1", "A+1", "..", "a/b", "report~0mi4lf3k0+1", "1+1", "ab+4", "never"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name, err := fileName(text); err == nil {
			if len(name) > 255 || strings.ContainsAny(name, `/\`) || strings.Trim(name, ".") == "" || strings.ToLower(name) != name {
				t.Fatalf("the part %q has the name %q", text, name)
			}
			if part, err := partOf(name); err != nil || part != text {
				t.Fatalf("the part %q has the name %q, which is that of %q, %v", text, name, part, err)
			}
		}
		if part, err := partOf(text); err == nil {
			if name, err := fileName(part); err != nil || name != text {
				t.Fatalf("the name %q is that of the part %q, which has the name %q, %v", text, part, name, err)
			}
		}
	})
}
