package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// Each page that speaks of missed fires says which these are in the one sentence that the product says it in, or points to where it stands.
func TestOneSentenceSaysWhichFiresAreMissed(t *testing.T) {
	speaks := regexp.MustCompile("(?i)missed fire|fires[a-z ]* missed|was missed|`catch_up`")
	root := filepath.Join("..", "..")
	said := 0
	look := func(path string) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(page)), " ")
		switch {
		case strings.Contains(text, job.MissedRule):
			said++
		case speaks.MatchString(text) && !strings.Contains(text, "#missed-fires"):
			t.Errorf("%s speaks of missed fires: want it to say %q, or to link to protocol.md#missed-fires", path, job.MissedRule)
		}
		if old := regexp.MustCompile(`(?i)(over|more than) (5|five) minutes (late|missed)|down(time)? (of|for) more than five minutes`).FindString(text); old != "" {
			t.Errorf("%s says %q, which is another rule than %q", path, old, job.MissedRule)
		}
	}
	look(filepath.Join(root, "README.md"))
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && d.Name() != "mutants.md" { // a list of mistakes
			look(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if said < 8 {
		t.Errorf("%d pages say it, want at least 8", said)
	}
}
