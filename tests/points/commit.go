package points

import (
	"strings"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// The commits, as docs/protocol.md has them.
const (
	Setup        = "setup"         // the layout and the shards of a new store
	Horizon      = "horizon"       // tick 1: X is published
	To           = "to"            // tick 4: what a timer stands for
	Successor    = "successor"     // tick 5: the timer of the first fire beyond X
	Claim        = "claim"         // tick 6: the run of a fire
	Check        = "check"         // the timer that looks after a run
	Index        = "index"         // tick 8: what lists runs by time
	Print        = "print"         // tick 8: what the first sweep saw of a minute
	Sweep        = "sweep"         // tick 9: the cursor of a sweep
	Watermark    = "watermark"     // tick 9: W moves
	Create       = "create"        // edit 1 of a job that is not there
	Edit         = "edit"          // edit 1 of one that is
	Fence        = "fence"         // edit 3
	Unbind       = "unbind"        // edit 5: a run on demand loses its claim
	Idempotency  = "idempotency"   // request 1: the key
	Trigger      = "trigger"       // request 2: the timer
	Request      = "request"       // request 3: the run
	RequestClaim = "request-claim" // request 4, or the tick that its timer wakes
	Start        = "start"         // worker 1
	Finish       = "finish"        // the end of a run
	Retry        = "retry"         // an attempt failed, the queue hides the message until the next
	LongRetry    = "long-retry"    // an attempt failed, and the run waits in the store: run and timer
	Requeue      = "requeue"       // a worker died or gave back, the run waits for another
	DeadLetter   = "dead-letter"   // a run that died, with its listing
	Redrive      = "redrive"       // a dead run is opened again, with its check timer
	Cancel       = "cancel"        // a run is cancelled, or marked so
	Enter        = "enter"         // the gate of a job alone: runs take places, or have left
	Join         = "join"          // runs wait in line: gate, runs and places in line
	LetIn        = "let-in"        // the next in line: gate and runs, and their places in line go
	Open         = "open"          // the run of a workflow is under way
	Release      = "release"       // steps of it that are to run
	StepStart    = "step-start"    // worker 1, of a step
	StepFinish   = "step-finish"   // the end of a step
	Close        = "close"         // the end of a workflow's run
)

// namer tells what a write is.
type namer struct {
	mu     sync.Mutex
	shards map[string]timer.Shard // as last written or tried by this process
}

// of gives what an op is, among those that are written with it; "" for what no crash is tried at.
func (n *namer) of(op store.Op, beside []store.Op) []string {
	kind, _, _ := strings.Cut(op.Key.Partition, "#")
	_, versioned := op.If.Wants()
	switch kind {
	case "shard":
		return n.shard(op, beside)
	case "swept":
		return []string{Print}
	case "job":
		if versioned {
			return []string{Edit}
		}
		return []string{Create}
	case "idem":
		return []string{Idempotency}
	case "ran":
		return []string{Index}
	case "dead":
		if op.Kind == store.Delete {
			return []string{Redrive}
		}
		return []string{DeadLetter}
	case "due":
		return dueOf(op, beside)
	case "gate":
		return gateOf(beside)
	case "run":
		return runOf(op, beside)
	case "step":
		return stepOf(op)
	}
	return nil
}

func among(ops []store.Op, partition string) bool {
	for _, op := range ops {
		if strings.HasPrefix(op.Key.Partition, partition) {
			return true
		}
	}
	return false
}

func gateOf(ops []store.Op) []string {
	for _, op := range ops {
		switch {
		case !strings.HasPrefix(op.Key.Partition, "line#"):
		case op.Kind == store.Delete:
			return []string{LetIn}
		default:
			return []string{Join}
		}
	}
	return []string{Enter}
}

func dueOf(op store.Op, beside []store.Op) []string {
	kind, _, _, _, ok := timer.FromSort(op.Key.Sort)
	_, versioned := op.If.Wants()
	switch {
	case !ok || among(beside, "job#") || among(beside, "run#"):
		return nil // what it belongs to has the name
	case kind == timer.Check:
		return []string{Check}
	case kind == timer.Request && (versioned || op.Kind == store.Delete):
		return nil // callbacks that are told of together
	case kind == timer.Request, kind == timer.Batch:
		return []string{Trigger}
	case versioned:
		return []string{To}
	}
	return []string{Successor}
}

func runOf(op store.Op, beside []store.Op) []string {
	if among(beside, "gate#") {
		return nil // the gate has the name
	}
	var r run.Run
	if record.Decode(op.Value, &r) != nil {
		return nil
	}
	read, versioned := op.If.Wants()
	requested := r.Trigger == run.ByRequest
	switch r.State {
	case run.Fenced:
		return []string{Fence}
	case run.Scheduled:
		if versioned {
			return []string{Unbind}
		}
		return []string{Request}
	case run.Queued:
		switch {
		case among(beside, "dead#"):
			return nil // the listing, which goes, has the name
		case r.Attempt > 0:
			return []string{Requeue}
		case requested && !versioned:
			return []string{Request, RequestClaim}
		case requested:
			return []string{RequestClaim}
		}
		return []string{Claim}
	case run.Running:
		switch {
		case r.Cancel:
			return []string{Cancel}
		case read+1 == r.Fence:
			return []string{Start}
		case r.Heads():
			return []string{Open}
		}
		return nil // a lease is made longer
	case run.Retrying:
		if among(beside, "due#") {
			return []string{LongRetry}
		}
		return []string{Retry}
	case run.Cancelled:
		return []string{Cancel}
	case run.Succeeded, run.Failed:
		if r.Attempt == 0 {
			return []string{Close}
		}
	}
	return []string{Finish}
}

func stepOf(op store.Op) []string {
	var r run.Run
	if record.Decode(op.Value, &r) != nil {
		return nil
	}
	read, versioned := op.If.Wants()
	switch {
	case !versioned:
		return []string{Release}
	case r.State == run.Running && read+1 == r.Fence:
		return []string{StepStart}
	case r.State.Ended():
		return []string{StepFinish}
	}
	return nil
}

// shard tells what moves in the progress of the ticks.
func (n *namer) shard(op store.Op, beside []store.Op) (names []string) {
	var now timer.Shard
	if record.Decode(op.Value, &now) != nil {
		return nil
	}
	if among(beside, "meta") {
		return []string{Setup}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.shards[op.Key.Partition]
	n.shards[op.Key.Partition] = now
	if !known {
		return []string{Horizon} // the first that a process writes of a shard begins a pass
	}
	if now.Epoch > before.Epoch {
		names = append(names, Horizon)
	}
	if now.Watermark > before.Watermark {
		names = append(names, Watermark)
	}
	if now.Swept != before.Swept {
		names = append(names, Sweep)
	}
	return names
}
