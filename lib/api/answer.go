package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// answer is JSON and nothing else. An operation whose answer is more has a struct of its own: of its fields Body is what is sent, if it has
// one, as it is where it is []byte or a streamed and as JSON else, Status is the status where there are several, and all others are
// headers, by their tags.
type answer[T any] struct{ Body T }

// streamed writes an answer of status 200 itself.
type streamed func(w http.ResponseWriter)

// answers describes in the document what an operation answers in a struct.
func (op operation) answers(d *huma.Operation, registry huma.Registry, answer reflect.Type) {
	status := strconv.Itoa(op.success())
	success := d.Responses[status]
	if success == nil {
		success = &huma.Response{}
		d.Responses[status] = success
	}
	success.Description, success.Headers = http.StatusText(op.success()), map[string]*huma.Param{}
	for i := range answer.NumField() {
		switch f := answer.Field(i); {
		case f.Name == "Status":
		case f.Name != "Body":
			success.Headers[f.Tag.Get("header")] = &huma.Param{Schema: huma.SchemaFromField(registry, f, "")}
		case success.Content == nil && f.Type != reflect.TypeFor[streamed]():
			success.Content = map[string]*huma.MediaType{mediaJSON: {Schema: registry.Schema(f.Type, true, "")}}
		}
	}
}

// write sends an answer, a pointer to its struct or nil where there is nothing to say. An error means that nothing was sent.
func (op operation) write(w http.ResponseWriter, r *http.Request, out reflect.Value) error {
	status := op.success()
	if out.IsNil() {
		w.WriteHeader(status)
		return nil
	}
	out = out.Elem()
	var body any
	says := false
	headers := map[string]string{}
	for f, value := range out.Fields() {
		switch f.Name {
		case "Status":
			status = int(value.Int())
		case "Body":
			body, says = value.Interface(), true
		default:
			headers[f.Tag.Get("header")] = fmt.Sprint(value.Interface())
		}
	}
	text, raw := body.([]byte)
	stream, streams := body.(streamed)
	if says && !raw && !streams {
		headers["Content-Type"] = mediaJSON
		var err error
		if text, err = encoded(body); err != nil {
			return fmt.Errorf("answer of %s: %w", op.id, err)
		}
	}
	for name, value := range headers {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	switch {
	case streams:
		stream(w)
	case !says:
		w.WriteHeader(status)
	case op.tagged:
		tagged(w, r, text)
	default:
		w.WriteHeader(status)
		_, _ = w.Write(text) // the connection may be gone; there is nobody else to tell
	}
	return nil
}

// encoded is JSON for programs: in HTML it would have to be escaped.
func encoded(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return text.Bytes(), err
}
