package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// input is what a handler gets beside its parameters: whose request it is, and the body, of its own type.
type input[B any] struct {
	tenant string
	path   func(name string) string // gives the parameters of the path, by which a body is judged, too
	body   B
}

// register adds an operation without a body, whose parameters are the fields of P and whose answer is O. The form of a request is checked
// before the handler runs.
func register[P, O any](a *api, op operation, handle func(ctx context.Context, params *P, in input[noBody]) (*O, error)) {
	add(a, op, nil, nil, handle)
}

// accept is register for an operation with a body of type B. values names what of a body cannot be, as far as that can be told without the
// store: where the form of something is wrong, what it says of the rest is answered too. The handler refuses the same.
func accept[P, B, O any](a *api, op operation, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*O, error)) {
	var none B
	add(a, op, a.schemaOf(none), values, handle)
}

// formAlone is for bodies of which the form says all.
func formAlone[B any](input[B]) error { return nil }

// add is compiled once for each operation, so all that does not ask for their types is in operate: the function behind API Gateway is to
// stay small. It is why the framework describes the API and does not serve it.
func add[P, B, O any](a *api, op operation, schema *huma.Schema, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*O, error)) {
	a.operate(op, schema, handling{
		params: reflect.TypeFor[P](),
		answer: reflect.TypeFor[O](),
		read:   judging(values),
		handle: func(ctx context.Context, params, in any) (reflect.Value, error) {
			out, err := handle(ctx, params.(*P), in.(input[B]))
			return reflect.ValueOf(out), err
		},
	})
}

// handling is an operation's own part, its types hidden.
type handling struct {
	params, answer reflect.Type                                                                // structs
	read           func(r *http.Request, right []byte, check *form) (in any, err error)        // gives an input
	handle         func(ctx context.Context, params, in any) (answer reflect.Value, err error) // params and the answer are pointers, that of the answer may be nil
}

// judging reads a body of the right form, nil for an operation without one, and judges its values where its form is wrong elsewhere.
func judging[B any](values func(in input[B]) error) func(r *http.Request, right []byte, check *form) (in any, err error) {
	return func(r *http.Request, right []byte, check *form) (any, error) {
		in := input[B]{tenant: callerOf(r.Context()).Tenant, path: r.PathValue}
		if err := in.judge(values, right, check); err != nil {
			return nil, err
		}
		return in, nil
	}
}

// judge reads the body of an input, and judges its values where its form is wrong elsewhere.
func (in *input[B]) judge(values func(in input[B]) error, right []byte, check *form) error {
	wrong := check.wrong() > 0
	if right == nil || check.full() {
		return nil
	}
	if err := json.Unmarshal(right, &in.body); err != nil && !wrong {
		return err
	} else if err == nil && wrong {
		check.judge(values(*in))
	}
	return nil
}

// operate describes an operation and serves it: who calls may do it, and what is asked for has the form that the document says.
func (a *api) operate(op operation, schema *huma.Schema, h handling) {
	described, fields := op.describe(a, schema, h)
	a.doc.AddOperation(described)
	a.mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		leave, refused := a.gate(r.Context(), op)
		if refused != nil {
			refused.write(w)
			return
		}
		defer leave()
		check := form{registry: a.doc.Components.Schemas, later: a.later, earlier: a.earlier}
		params := reflect.New(h.params)
		check.parameters(described.Parameters, r, fields, params.Elem())
		var right []byte
		if schema != nil {
			text, refused := readBody(w, r, op)
			if refused != nil {
				refused.write(w)
				return
			}
			right = check.body(schema, text)
		}
		in, err := h.read(r, right, &check)
		if err == nil {
			err = check.problem()
		}
		var out reflect.Value
		if err == nil {
			out, err = h.handle(r.Context(), params.Interface(), in)
		}
		if err == nil {
			err = op.write(w, r, out)
		}
		if err != nil {
			a.problemOf(r.Context(), err).write(w)
		}
	})
}

// noBody is the body of operations that have none.
type noBody struct{}

// readBody takes a body of JSON. The type is asked for even of an empty one: a page of another site cannot send it
// without the browser asking first.
func readBody(w http.ResponseWriter, r *http.Request, op operation) ([]byte, *problem) {
	limit := op.bodyLimit()
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), op.bodyMedia()) {
		if op.takes != "" {
			w.Header().Set("Accept-Patch", op.takes)
			return nil, newProblem(codeNotJSON, "The body must be a merge patch (RFC 7396), such as {\"timeout\": \"5m\"}, and the header Content-Type: "+op.takes+" say so.")
		}
		return nil, newProblem(codeNotJSON, "The body must be JSON, and the header Content-Type: application/json say so. Send {} where there is nothing to say.")
	}
	text, err := readAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, newProblem(codeTooLarge, "The body is larger than this path takes, which is "+sizeText(limit)+".")
	case err != nil:
		return nil, newProblem(codeMalformed, "The body broke off: "+err.Error())
	}
	return text, nil
}
