package target

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/record"
)

// A job that was stored before there were secrets must read as it was written, and be written as an older Belfry reads it.
func TestValuesAreStoredAsTextsWere(t *testing.T) {
	type oldHTTP struct {
		URL     string            `cbor:"1,keyasint"`
		Headers map[string]string `cbor:"3,keyasint,omitempty"`
	}
	old := oldHTTP{URL: "http://a", Headers: map[string]string{"A": "b", "Empty": ""}}
	stored, err := record.Encode(old)
	if err != nil {
		t.Fatal(err)
	}
	var now HTTP
	if err := record.Decode(stored, &now); err != nil || !reflect.DeepEqual(now, HTTP{URL: "http://a", Headers: Texts(old.Headers)}) {
		t.Fatalf("the old record reads as %+v, %v", now, err)
	}
	again, err := record.Encode(now)
	if err != nil || string(again) != string(stored) {
		t.Fatalf("written again it is %x, %v; want %x", again, err, stored)
	}

	now.Headers["B"] = Secret("token")
	if again, err = record.Encode(now); err != nil {
		t.Fatal(err)
	}
	var back HTTP
	if err := record.Decode(again, &back); err != nil || !reflect.DeepEqual(back, now) {
		t.Fatalf("with a secret it reads as %+v, %v", back, err)
	}
	if err := record.Decode(again, &old); err == nil {
		t.Error("a reader that knows no secrets takes the name of one for a text")
	}
	shown, err := record.Explain(again, HTTP{})
	text, _ := json.Marshal(shown)
	if err != nil || !strings.Contains(string(text), `"headers":{"A":"b","B":{"secret":"token"},"Empty":""}`) {
		t.Errorf("for people it is %s, %v", text, err)
	}
}

func TestValuesInJSON(t *testing.T) {
	for text, want := range map[string]Value{`"a"`: Text("a"), `""`: {}, `{"secret":"token"}`: Secret("token")} {
		var got Value
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%s: shown as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{`1`, `["a"]`, `true`, `{}`, `{"secret":""}`, `{"secret":1}`, `{"secret":"a","b":1}`, `{"Text":"a"}`} {
		var got Value
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), `{"secret": "name"}`) {
			t.Errorf("%s: got %+v, %v; want an error that says what is right", text, got, err)
		}
	}
}

func TestSecretsInADefinitionAreNamedRightly(t *testing.T) {
	http := func(change func(*HTTP)) Spec {
		h := HTTP{URL: "https://example.org"}
		change(&h)
		return Spec{HTTP: &h}
	}
	for name, c := range map[string]struct {
		spec  Spec
		field string
	}{
		"header":               {http(func(h *HTTP) { h.Headers = map[string]Value{"A": Secret("a.b-c_1")} }), ""},
		"env":                  {Spec{Exec: &Exec{Argv: []string{"a"}, Env: map[string]Value{"A": Secret("a")}}}, ""},
		"sign":                 {http(func(h *HTTP) { h.Sign = &Sign{Secret: "a"} }), ""},
		"sign, two keys":       {http(func(h *HTTP) { h.Sign = &Sign{Secret: "a", Previous: "b"} }), ""},
		"webhook-id alone":     {http(func(h *HTTP) { h.Headers = Texts(map[string]string{"webhook-id": "1"}) }), ""},
		"path for a header":    {http(func(h *HTTP) { h.Headers = map[string]Value{"A": Secret("../a")} }), "http.headers.A.secret"},
		"blank for env":        {Spec{Exec: &Exec{Argv: []string{"a"}, Env: map[string]Value{"A": Secret("a b")}}}, "exec.env.A.secret"},
		"reserved header":      {http(func(h *HTTP) { h.Headers = map[string]Value{"Host": Secret("a")} }), "http.headers"},
		"sign without a key":   {http(func(h *HTTP) { h.Sign = &Sign{} }), "http.sign.secret http.sign.previous"},
		"sign, bad key before": {http(func(h *HTTP) { h.Sign = &Sign{Secret: "a", Previous: "/"} }), "http.sign.previous"},
		"sign, one key twice":  {http(func(h *HTTP) { h.Sign = &Sign{Secret: "a", Previous: "a"} }), "http.sign.previous"},
		"sign and webhook-id": {http(func(h *HTTP) {
			h.Sign, h.Headers = &Sign{Secret: "a"}, Texts(map[string]string{"webhook-id": "1"})
		}), "http.headers"},
	} {
		if got := fieldsOf(c.spec.Validate()); got != c.field {
			t.Errorf("%s: errors of %q, want %q", name, got, c.field)
		}
	}
}
