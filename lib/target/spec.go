package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Spec says what a run calls: exactly one of its fields is set.
type Spec struct {
	HTTP    *HTTP    `json:"http,omitempty" cbor:"1,keyasint,omitempty"`
	Exec    *Exec    `json:"exec,omitempty" cbor:"2,keyasint,omitempty"`
	Handler *Handler `json:"handler,omitempty" cbor:"3,keyasint,omitempty"`
	AWS     *AWS     `json:"aws,omitempty" cbor:"4,keyasint,omitempty"`
	Email   *Email   `json:"email,omitempty" cbor:"6,keyasint,omitempty"`

	// Workflow is the definition of a graph of steps, each of which calls a target. No worker runs it: package flow reads it.
	Workflow json.RawMessage `json:"workflow,omitempty" cbor:"5,keyasint,omitempty"`
}

// HTTP calls an address. An answer of 2xx is success; 3xx is refused, 408, 409, 425,
// 429 and 5xx are retried, and the rest is permanent, except where the two lists say otherwise.
type HTTP struct {
	URL             string           `json:"url" cbor:"1,keyasint"`                                  // absolute, http or https
	Method          string           `json:"method,omitempty" cbor:"2,keyasint,omitempty"`           // "" is POST
	Headers         map[string]Value `json:"headers,omitempty" cbor:"3,keyasint,omitempty"`          // sent beside Belfry's own
	PermanentStatus []int            `json:"permanent_status,omitempty" cbor:"4,keyasint,omitempty"` // 300 to 599: never retried
	RetryStatus     []int            `json:"retry_status,omitempty" cbor:"5,keyasint,omitempty"`     // 300 to 599: retried
	Sign            *Sign            `json:"sign,omitempty" cbor:"6,keyasint,omitempty"`             // nil: unsigned
}

// Sign names the keys under which a call is signed after Standard Webhooks, so that a receiver can tell who sent it.
type Sign struct {
	Secret   string `json:"secret" cbor:"1,keyasint"`                       // the secret that holds the key
	Previous string `json:"previous,omitempty" cbor:"2,keyasint,omitempty"` // the key before: signs too, for receivers that have not changed yet
}

// Exec starts a process on the worker's host. Exit code 0 is success; the others are retried unless listed.
type Exec struct {
	Argv               []string         `json:"argv" cbor:"1,keyasint"`                                     // the program and its arguments; no shell
	Env                map[string]Value `json:"env,omitempty" cbor:"2,keyasint,omitempty"`                  // added to what the worker lets its processes inherit
	Dir                string           `json:"dir,omitempty" cbor:"3,keyasint,omitempty"`                  // absolute; "" is the worker's own folder
	PermanentExitCodes []int            `json:"permanent_exit_codes,omitempty" cbor:"4,keyasint,omitempty"` // 1 to 255: never retried
}

// Handler calls a Go function that the worker's program registered under this name.
type Handler struct {
	Name string `json:"name" cbor:"1,keyasint"`
}

// MethodOrDefault is the request method with its default filled in.
func (h HTTP) MethodOrDefault() string {
	if h.Method == "" {
		return "POST"
	}
	return h.Method
}

// String names the target for people, without anything secret: the kind, and the host, program or function.
func (s Spec) String() string {
	switch {
	case s.HTTP != nil:
		return fmt.Sprintf("http %s %s", s.HTTP.MethodOrDefault(), withoutSecrets(s.HTTP.URL))
	case s.Exec != nil && len(s.Exec.Argv) > 0:
		return "exec " + s.Exec.Argv[0]
	case s.Handler != nil:
		return "handler " + s.Handler.Name
	case s.AWS != nil:
		return "aws " + s.AWS.ARN
	case s.Workflow != nil:
		return "workflow"
	case s.Email != nil && len(s.Email.To) == 1:
		return "email " + s.Email.To[0]
	case s.Email != nil && len(s.Email.To) > 1:
		return fmt.Sprintf("email %s and %d more", s.Email.To[0], len(s.Email.To)-1)
	default:
		return "no target"
	}
}

// Need names what a worker must offer to run the target, such as "http" or "handler resize".
func (s Spec) Need() string {
	switch {
	case s.HTTP != nil:
		return "http"
	case s.Exec != nil:
		return "exec"
	case s.Handler != nil:
		return "handler " + s.Handler.Name
	case s.AWS != nil:
		return "aws"
	case s.Workflow != nil:
		return "workflow"
	case s.Email != nil:
		return "email"
	}
	return "a newer kind of target"
}

// Validate reports every field that no worker could use, as joined *invalid.Error with paths such as "http.url". It is
// pure: it asks neither DNS nor the file system, because the host that accepts a job is not the one that runs it. What a workflow
// holds is not looked at.
func (s Spec) Validate() error {
	var set []string
	var errs []error
	if s.HTTP != nil {
		set = append(set, "http")
		errs = append(errs, invalid.Under("http", s.HTTP.validate()))
	}
	if s.Exec != nil {
		set = append(set, "exec")
		errs = append(errs, invalid.Under("exec", s.Exec.validate()))
	}
	if s.Handler != nil {
		set = append(set, "handler")
		errs = append(errs, invalid.Under("handler", s.Handler.validate()))
	}
	if s.AWS != nil {
		set = append(set, "aws")
		errs = append(errs, invalid.Under("aws", s.AWS.validate()))
	}
	if s.Workflow != nil {
		set = append(set, "workflow")
	}
	if s.Email != nil {
		set = append(set, "email")
		errs = append(errs, invalid.Under("email", s.Email.validate()))
	}
	const want = "exactly one of http, exec, handler, aws, email and workflow"
	switch len(set) {
	case 1:
	case 0:
		errs = append(errs, invalid.Field("", "none of them", want))
	default:
		errs = append(errs, invalid.Field("", strings.Join(set, " and "), want))
	}
	return errors.Join(errs...)
}
