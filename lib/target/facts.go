package target

import (
	"strconv"
	"time"
)

// ownEnv begins the names of every variable that Belfry sets, and of those that configure Belfry itself.
const ownEnv = "BELFRY_"

// Fact is one thing that every target is told about the attempt.
type Fact struct {
	Header string // its name where the target takes headers or attributes
	Value  string
	env    string
}

// Facts is the one list of what targets are told beside the payload, so that they never differ.
func (c Call) Facts() []Fact {
	all := []Fact{
		{"Belfry-Run", c.Run, ownEnv + "RUN"},
		{"Belfry-Job", c.Job, ownEnv + "JOB"},
		{"Belfry-Attempt", strconv.Itoa(c.Attempt), ownEnv + "ATTEMPT"},
		{"Belfry-Fence", strconv.FormatUint(c.Fence, 10), ownEnv + "FENCE"},
		{"Belfry-Nominal-Time", c.Nominal.UTC().Format(time.RFC3339Nano), ownEnv + "NOMINAL_TIME"},
	}
	if !c.AtMostOnce {
		all = append(all, Fact{"Idempotency-Key", c.Run, ownEnv + "IDEMPOTENCY_KEY"})
	}
	if parent := c.Trace.Traceparent(); parent != "" {
		all = append(all, Fact{"Traceparent", parent, "TRACEPARENT"}) // as W3C and OpenTelemetry name it
	}
	return all
}
