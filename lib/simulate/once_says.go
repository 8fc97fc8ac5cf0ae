package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// says is what happened and why, in words.
func says(p wire.OncePlan) string {
	parts := []string{saysOutcome(p.Outcome), saysTarget(p.Outcome), saysRefusal(p), saysWhy(p), saysNoKey(p.Question)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

func saysOutcome(o wire.OnceOutcome) string {
	ended := fmt.Sprintf("The run is %s.", o.State)
	if o.State == run.Succeeded.String() {
		ended = "The run has succeeded."
	}
	return fmt.Sprintf("The target was %s and made %s. %s", callTimes(o.Calls), payments(o.Effects), ended)
}

// saysTarget says why the target paid nothing for a call, "" where it paid for each.
func saysTarget(o wire.OnceOutcome) string {
	switch {
	case o.RepeatedCalls > 0:
		return "It had paid under the key of the second call already, so it paid nothing for that."
	case o.RefusedCalls > 0:
		return "The late call had a fence older than the highest that the target had seen for the run, so the target refused it."
	}
	return ""
}

// saysRefusal says why Belfry refused a worker, "" where it refused none, or where saysWhy does.
func saysRefusal(p wire.OncePlan) string {
	o, fault := p.Outcome, p.Question.Fault
	zombie := fault == faultZombie || fault == faultFirst
	switch {
	case o.RefusedWorkers == 0:
		return ""
	case fault == faultTwice:
		return "Both workers had the message, and Belfry let one of them start."
	case zombie && o.State == run.Unknown.String():
		return "Belfry refused what the worker that woke up reported: the run had ended as unknown."
	case zombie:
		return "Belfry refused what the worker that woke up reported: its successor held the run."
	}
	return ""
}

// saysWhy says which rule made the outcome what it is, and what would have helped; "" where nothing went wrong.
func saysWhy(p wire.OncePlan) string {
	o, q := p.Outcome, p.Question
	unknown := o.State == run.Unknown.String()
	switch after := paidAfter(p); {
	case after > 0:
		return fmt.Sprintf("The payment was made %s after the run became unknown. If somebody retries the run before that, two payments are made, unless the target heeds the fence.", schedule.Duration(after))
	case o.Effects > 1 && q.Guard == guardFence && q.Fault == faultFirst:
		return "A fence alone does not stop a late worker that is the first to call: the call of its successor is the newer one. An Idempotency-Key does."
	case o.Effects > 1 && q.Guard == guardFence:
		return "A fence alone does not tell a repeated call: that of the second attempt is the newer one. An Idempotency-Key does."
	case o.Effects > 1:
		return "At least once means that an attempt whose end nobody knows is made again. A target that heeds the Idempotency-Key pays once."
	case unknown && o.Effects == 0:
		return "At most once means that Belfry tries nothing again by itself where nobody knows. Here the payment is missing: look, and use belfry run retry RUN --force."
	case unknown:
		return "At most once means that Belfry tries nothing again by itself where nobody knows. Here the payment was made: look before you use belfry run retry RUN --force."
	case q.Fault == faultWrite:
		return "The write was repeated until it had an answer, under the same number, so it counts once."
	case q.Fault == faultClocks:
		return "A server that notices that its clock has jumped judges no lease for 30s. By then every living worker has renewed its own."
	case q.Fault == faultBefore && q.Guarantee == string(job.AtLeastOnce):
		return "The lease of the dead worker ran out, and another one made the call."
	}
	return ""
}

// saysNoKey says of a guarantee that has no key that a target waits for it in vain.
func saysNoKey(q wire.OnceQuestion) string {
	if q.Guarantee == string(job.AtMostOnce) && (q.Guard == guardKey || q.Guard == guardBoth) {
		return "A run at most once sends no Idempotency-Key: HTTP libraries repeat a call that has one by themselves."
	}
	return ""
}

// callTimes says how often a target was called.
func callTimes(n int) string {
	switch n {
	case 0:
		return "never called"
	case 1:
		return "called once"
	case 2:
		return "called twice"
	}
	return fmt.Sprintf("called %d times", n)
}

// payments says how many a target made.
func payments(n int) string {
	switch n {
	case 0:
		return "no payment"
	case 1:
		return "1 payment"
	}
	return fmt.Sprintf("%d payments", n)
}

// paidAfter is how long after the run became unknown its payment was made; 0 where it was not.
func paidAfter(p wire.OncePlan) time.Duration {
	unknown := -1.0
	for _, e := range p.Events {
		switch {
		case e.Event == run.Unknown.String():
			unknown = e.At
		case e.Event == eventEffect && unknown >= 0:
			return time.Duration((e.At - unknown) * float64(time.Second))
		}
	}
	return 0
}
