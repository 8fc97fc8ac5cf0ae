package simulate

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Path is where a choice of outcomes looks: .attempt, or a member of the payload such as .payload.customer.name. The zero value is nowhere.
type Path struct {
	attempt bool
	payload []string // the members to go down; nil where the path is not of the payload
}

func (p Path) isZero() bool { return !p.attempt && p.payload == nil }

var step = regexp.MustCompile(`^\.[A-Za-z_][A-Za-z0-9_]*`)

// parsePath reads what the field by has.
func parsePath(text string) (Path, error) {
	names := []string{}
	rest := text
	for rest != "" {
		name := step.FindString(rest)
		if name == "" {
			break
		}
		names, rest = append(names, name[1:]), rest[len(name):]
	}
	switch {
	case rest == "" && len(names) == 1 && names[0] == "attempt":
		return Path{attempt: true}, nil
	case rest == "" && len(names) > 0 && names[0] == "payload":
		return Path{payload: names[1:]}, nil
	case len(names) > 0 && (names[0] == "input" || names[0] == "item" || names[0] == "index" || names[0] == "iteration"):
		return Path{}, invalid.Field("by", text, ".attempt or a path in .payload; what steps see is not built yet")
	case len(names) > 0 && names[0] == "payload":
		return Path{}, invalid.Field("by", text, "a path such as .payload.customer.name; other expressions are not built yet")
	}
	return Path{}, invalid.Field("by", text, ".attempt, or a path in the payload such as .payload.customer")
}

// text gives what the path finds as text: a text's characters, or else its JSON. It is false where there is nothing, or null.
func (p Path) text(payload json.RawMessage, attempt int) (string, bool) {
	switch {
	case p.attempt:
		return strconv.Itoa(attempt), true
	case p.payload == nil || len(payload) == 0:
		return "", false
	}
	at := payload
	for _, name := range p.payload {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return "", false
		}
		at = object[name]
	}
	var text string
	switch found := strings.TrimSpace(string(at)); {
	case found == "" || found == "null":
		return "", false
	case json.Unmarshal(at, &text) == nil:
		return text, true
	default:
		return found, true
	}
}
