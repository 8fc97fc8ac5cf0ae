package wire

import (
	"regexp"
	"strings"
)

var (
	// comma is a comma with the backslashes in front of it: half of them are text, and one that is left over says that the comma is, too.
	comma = regexp.MustCompile(`\\*,`)
	// labelStart is how a label begins.
	labelStart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}=`)
)

// SplitLabels takes a list of labels apart, such as "team=billing,env=prod". A comma begins a label only where NAME= follows it, so most
// values with commas are written as they are. A comma of a value that NAME= follows is written "\,".
func SplitLabels(list string) []string {
	var all []string
	var label strings.Builder
	at := 0
	for _, found := range comma.FindAllStringIndex(list, -1) {
		slashes := found[1] - found[0] - 1
		label.WriteString(list[at:found[0]] + strings.Repeat(`\`, slashes/2))
		at = found[1]
		if slashes%2 == 0 && labelStart.MatchString(list[at:]) {
			all = append(all, label.String())
			label.Reset()
		} else {
			label.WriteByte(',')
		}
	}
	return append(all, label.String()+list[at:])
}

// JoinLabel gives a label as SplitLabels takes it for one.
func JoinLabel(name, value string) string {
	var text strings.Builder
	at := 0
	for _, found := range comma.FindAllStringIndex(value, -1) {
		slashes := value[found[0] : found[1]-1]
		text.WriteString(value[at:found[0]] + slashes + slashes)
		if at = found[1]; labelStart.MatchString(value[at:]) {
			text.WriteByte('\\')
		}
		text.WriteByte(',')
	}
	return name + "=" + text.String() + value[at:]
}
