package simulate

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Path is where a choice of outcomes looks: .attempt, or a member of the payload or input such as .payload.customer.name. The zero value is nowhere.
type Path struct {
	of      string   // attempt, payload or input; "" where the path is nowhere
	members []string // to go down
}

func (p Path) isZero() bool { return p.of == "" }

// Called is what a choice of outcomes sees of an attempt.
type Called struct {
	Payload json.RawMessage // of the run; of a step, of the run that it is of
	Input   json.RawMessage // what the target is handed: of a run its payload
	Attempt int             // counted from 1
}

var member = regexp.MustCompile(`^\.[A-Za-z_][A-Za-z0-9_]*`)

// parsePath reads what the field by has.
func parsePath(text string) (Path, error) {
	names := []string{}
	rest := text
	for rest != "" {
		name := member.FindString(rest)
		if name == "" {
			break
		}
		names, rest = append(names, name[1:]), rest[len(name):]
	}
	switch {
	case rest == "" && len(names) == 1 && names[0] == "attempt":
		return Path{of: "attempt"}, nil
	case rest == "" && len(names) > 0 && (names[0] == "payload" || names[0] == "input"):
		return Path{of: names[0], members: names[1:]}, nil
	case len(names) > 0 && (names[0] == "item" || names[0] == "index" || names[0] == "iteration"):
		return Path{}, invalid.Field("by", text, ".attempt or a path in .payload or .input; steps that are repeated are not built yet")
	case len(names) > 0 && (names[0] == "payload" || names[0] == "input"):
		return Path{}, invalid.Field("by", text, "a path such as .payload.customer.name; other expressions are not built yet")
	}
	return Path{}, invalid.Field("by", text, ".attempt, or a path in the payload or input such as .payload.customer")
}

// text gives what the path finds as text: a text's characters, or else its JSON. It is false where there is nothing, or null.
func (p Path) text(c Called) (string, bool) {
	at := c.Payload
	switch {
	case p.of == "attempt":
		return strconv.Itoa(c.Attempt), true
	case p.of == "input":
		at = c.Input
	}
	if p.isZero() || len(at) == 0 {
		return "", false
	}
	for _, name := range p.members {
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
