package simulate

import "encoding/json"

// Path is where a choice of outcomes looks: .attempt, or a member of the payload such as .payload.customer.name. The zero value is nowhere.
type Path struct {
	attempt bool
	payload []string
	given   bool
}

// text gives what the path finds as text: a text's characters, or else its JSON. It is false where there is nothing.
func (p Path) text(payload json.RawMessage, attempt int) (string, bool) { return "", false }
