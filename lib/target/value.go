package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/fxamacker/cbor/v2"
)

// Value is what a header or a variable holds: a text, or what a secret of this name holds when the attempt is made. In JSON
// it is "text" or {"secret": "name"}, and likewise in a record, where a text stands as it always has.
type Value struct {
	Text   string `json:"-" cbor:"-"`                                   // counts where Secret is ""
	Secret string `json:"secret,omitempty" cbor:"1,keyasint,omitempty"` // a name, never the secret itself
}

// Text makes a value of a text.
func Text(text string) Value { return Value{Text: text} }

// Secret makes a value of the name of a secret.
func Secret(name string) Value { return Value{Secret: name} }

// Texts makes values of texts.
func Texts(texts map[string]string) map[string]Value {
	if texts == nil {
		return nil
	}
	values := make(map[string]Value, len(texts))
	for name, text := range texts {
		values[name] = Text(text)
	}
	return values
}

// String shows the value for people.
func (v Value) String() string {
	if v.Secret != "" {
		return "[secret " + v.Secret + "]"
	}
	return v.Text
}

func (v Value) size() int { return len(v.Text) + len(v.Secret) }

// named is Value's form when it names a secret, without the methods that choose between the two.
type named struct {
	Secret string `json:"secret" cbor:"1,keyasint"`
}

// MarshalJSON gives "text" or {"secret": "name"}.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Secret != "" {
		return json.Marshal(named{v.Secret})
	}
	return json.Marshal(v.Text)
}

// UnmarshalJSON takes what MarshalJSON gives, and nothing else.
func (v *Value) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var n named
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&n); err != nil || n.Secret == "" {
			return errors.New(`want a text, or {"secret": "name"}`)
		}
		*v = Value{Secret: n.Secret}
		return nil
	}
	*v = Value{}
	if err := json.Unmarshal(data, &v.Text); err != nil {
		return errors.New(`want a text, or {"secret": "name"}`)
	}
	return nil
}

// MarshalCBOR writes a text as records have always had it. A version of Belfry that knows no secrets cannot read the other
// form, and leaves such a job alone.
func (v Value) MarshalCBOR() ([]byte, error) {
	if v.Secret != "" {
		return cbor.Marshal(named{v.Secret})
	}
	return cbor.Marshal(v.Text)
}

// UnmarshalCBOR takes both forms.
func (v *Value) UnmarshalCBOR(data []byte) error {
	const majorMap = 5 // RFC 8949, 3.1: the first three bits of an item
	*v = Value{}
	if len(data) > 0 && data[0]>>5 == majorMap {
		var n named
		if err := cbor.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("the name of a secret: %w", err)
		}
		if n.Secret == "" {
			return errors.New("a value of a form that this version does not know")
		}
		v.Secret = n.Secret
		return nil
	}
	return cbor.Unmarshal(data, &v.Text)
}

// SecretNamePattern is what the names of secrets look like. They are names of files too.
const SecretNamePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`

var secretName = regexp.MustCompile(SecretNamePattern)

const wantSecretName = "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit"

// ValidSecretName tells whether a secret may have this name.
func ValidSecretName(name string) bool { return secretName.MatchString(name) }
