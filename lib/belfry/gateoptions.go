package belfry

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// GateOption says something of a gate beside its limit. See [Belfry.SetGate].
type GateOption struct{ set func(*gate.Definition) }

// MaxWait skips a run that has waited at the gate for longer, 1 s to 5 years: its Why has the code "max_wait". It holds for runs that join the line from then on. 0 has them
// wait for as long as it takes, which is the default.
func MaxWait(d time.Duration) GateOption {
	return GateOption{func(def *gate.Definition) { def.MaxWait = schedule.Duration(d) }}
}

// The orders of [GateOrder].
const (
	OrderPriority = string(gate.OrderPriority)
	OrderFIFO     = string(gate.OrderFIFO)
	OrderDeadline = string(gate.OrderDeadline)
)

// GateOrder says which of the runs that wait is let in first: under [OrderPriority], the default, whoever was due first, where a run of high priority counts as due 10 minutes earlier, and one
// of low priority 10 minutes later; under [OrderFIFO] whoever was due first; under [OrderDeadline] whoever has to have ended first, and behind those whoever has no [Deadline].
func GateOrder(order string) GateOption {
	return GateOption{func(def *gate.Definition) { def.Order = gate.Order(order) }}
}
