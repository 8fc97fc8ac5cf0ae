package target

import (
	"strconv"
	"time"
)

// ownEnv begins the names of every variable that Belfry sets, and of those that configure Belfry itself.
const ownEnv = "BELFRY_"

// fact is one thing that every target is told about the attempt.
type fact struct{ header, env, value string }

// facts is the one list of what http and exec targets are told, so that the two never differ.
func (c Call) facts() []fact {
	all := []fact{
		{"Belfry-Run", ownEnv + "RUN", c.Run},
		{"Belfry-Job", ownEnv + "JOB", c.Job},
		{"Belfry-Attempt", ownEnv + "ATTEMPT", strconv.Itoa(c.Attempt)},
		{"Belfry-Fence", ownEnv + "FENCE", strconv.FormatUint(c.Fence, 10)},
		{"Belfry-Nominal-Time", ownEnv + "NOMINAL_TIME", c.Nominal.UTC().Format(time.RFC3339Nano)},
	}
	if !c.AtMostOnce {
		all = append(all, fact{"Idempotency-Key", ownEnv + "IDEMPOTENCY_KEY", c.Run})
	}
	return all
}
