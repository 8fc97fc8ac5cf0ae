package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
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
	add(a, op, reader[noBody, struct{}]{}, bare(handle))
}

// accept is register for an operation with a body of type B, of which read makes what is asked for, and refuses what cannot be, as far as that can
// be told without the store: where the form of something is wrong, what it says of the rest is answered too. The handler gets what was read.
func accept[P, B, Q, O any](a *api, op operation, read func(in input[B]) (Q, error), handle func(ctx context.Context, params *P, in input[B], asked Q) (*O, error)) {
	add(a, op, reader[B, Q]{of: read}, handle)
}

// acceptUnread is accept for an operation whose handler judges the values itself: beside what stands in the store, or each with a verdict of its
// own. values names what the handler refuses, where the form of something else is wrong.
func acceptUnread[P, B, O any](a *api, op operation, values func(in input[B]) error, handle func(ctx context.Context, params *P, in input[B]) (*O, error)) {
	add(a, op, judging(values), bare(handle))
}

// bare is a handler to which nothing is handed on.
func bare[P, B, O any](handle func(ctx context.Context, params *P, in input[B]) (*O, error)) func(ctx context.Context, params *P, in input[B], _ struct{}) (*O, error) {
	return func(ctx context.Context, params *P, in input[B], _ struct{}) (*O, error) {
		return handle(ctx, params, in)
	}
}

// formAlone is for bodies of which the form says all.
func formAlone[B any](input[B]) error { return nil }

// add is compiled once for each operation, so all that does not ask for their types is in operate: the function behind API Gateway is to
// stay small. It is why the framework describes the API and does not serve it.
func add[P, B, Q, O any](a *api, op operation, read reader[B, Q], handle func(ctx context.Context, params *P, in input[B], asked Q) (*O, error)) {
	a.operate(op, handling{
		params: reflect.TypeFor[P](),
		body:   reflect.TypeFor[B](),
		answer: reflect.TypeFor[O](),
		read:   read.request,
		handle: func(ctx context.Context, params, asked any) (reflect.Value, error) {
			r := asked.(asking[B, Q])
			out, err := handle(ctx, params.(*P), r.in, r.asked)
			return reflect.ValueOf(out), err
		},
	})
}

// handling is an operation's own part, its types hidden.
type handling struct {
	params, answer reflect.Type // structs
	body           reflect.Type
	read           func(r *http.Request, right []byte, check *form) (asked any, err error)        // gives an asking
	handle         func(ctx context.Context, params, asked any) (answer reflect.Value, err error) // params and the answer are pointers, that of the answer may be nil
}

// asking is an input, and what was read of it.
type asking[B, Q any] struct {
	in    input[B]
	asked Q
}

// reader makes of an input what is asked for. late: where the form of a request is right, that is left to the handler.
type reader[B, Q any] struct {
	of   func(in input[B]) (Q, error)
	late bool
}

// judging is a reader that leaves values of a right form to the handler.
func judging[B any](values func(in input[B]) error) reader[B, struct{}] {
	return reader[B, struct{}]{of: func(in input[B]) (struct{}, error) { return struct{}{}, values(in) }, late: true}
}

// request reads what a request asks for.
func (d reader[B, Q]) request(r *http.Request, right []byte, check *form) (any, error) {
	return d.read(input[B]{tenant: callerOf(r.Context()).Tenant, path: r.PathValue}, right, check)
}

// read reads a body of the right form, nil for an operation without one, into an input. Where the form of something else is wrong, it only judges
// the values.
func (d reader[B, Q]) read(in input[B], right []byte, check *form) (q asking[B, Q], err error) {
	q.in = in
	wrong := check.wrong() > 0
	if right == nil || check.full() {
		return q, nil
	}
	err = json.Unmarshal(right, &q.in.body)
	if err == nil && (wrong || !d.late) {
		if q.asked, err = d.of(q.in); wrong {
			check.judge(err)
		}
	}
	if wrong {
		return q, nil // it is answered with all else that is
	}
	return q, err
}

// operate describes an operation and serves it: who calls may do it, and what is asked for has the form that the document says.
func (a *api) operate(op operation, h handling) {
	described := a.of(op, h)
	a.mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		leave, refused := a.gate(r.Context(), op)
		if refused != nil {
			refused.write(w)
			return
		}
		defer leave()
		check := form{registry: a.doc.Components.Schemas, later: a.later, ignored: a.ignored}
		params := reflect.New(h.params)
		check.parameters(described.Parameters, r, described.fields, params.Elem())
		var right []byte
		if described.body != nil {
			text, refused := readBody(w, r, op)
			if refused != nil {
				refused.write(w)
				return
			}
			right = check.body(described.body, text)
		}
		asked, err := h.read(r, right, &check)
		if err == nil {
			err = check.problem()
		}
		var out reflect.Value
		if err == nil {
			out, err = h.handle(r.Context(), params.Interface(), asked)
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
