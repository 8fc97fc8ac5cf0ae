package simulate

import (
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// meant is a question after a name that is close to what was given, or "".
func meant(given string, known []string) string {
	if near := invalid.Nearest(given, known); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

// anyOf lists names as a sentence has them.
func anyOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
