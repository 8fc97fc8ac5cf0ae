package lambda

import (
	"context"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// ownFunctions and ownQueues are what the template calls the parts of a stack, behind its name.
var (
	ownFunctions = []string{"api", "tick", "worker", "deadletter"}
	ownQueues    = []string{"dead", "ticks"}
)

// own tells that an ARN is of one of the stack's own functions or queues. They believe what they are given: an event of the API says who
// calls, a message says whose run it is for. So no job may write to them, of whatever tenant, however much BELFRY_TARGET_ARNS lets through.
// Neither region nor account is looked at: another stack of the same name is no target either.
func (s Settings) own(text string) bool {
	arn, err := target.ParseARN(text)
	if err != nil {
		return false
	}
	switch arn.Service {
	case target.ServiceLambda:
		return s.Stack != "" && slices.ContainsFunc(ownFunctions, func(part string) bool { return arn.Name() == s.Stack+"-"+part })
	case target.ServiceSQS:
		at, err := sqs.ParseURL(s.Queue)
		if err != nil {
			return false // a function does not start with it
		}
		names := make([]string, 0, len(ownQueues)+3*len(s.Pools))
		for _, part := range ownQueues {
			names = append(names, at.Prefix+"-"+part)
		}
		for _, pool := range s.Pools {
			for _, priority := range queue.Priorities {
				names = append(names, at.Prefix+"-"+pool.Name+"-"+string(priority))
			}
		}
		return slices.Contains(names, arn.Resource)
	}
	return false
}

// Outward gives what calls AWS for jobs, and nothing of the stack itself: a job may have been put by a process that knows nothing of it.
func (s Settings) Outward(call target.CallAWS) target.CallAWS {
	return func(ctx context.Context, to target.AWS, about target.Call) (target.Result, error) {
		if s.own(to.ARN) {
			return target.Result{}, target.Reported(target.KindRefused, errOwn(to.ARN).Error(), true, 0)
		}
		return call(ctx, to, about)
	}
}

func errOwn(arn string) error {
	return fmt.Errorf("%s is a part of Belfry itself, which no job may call", arn)
}
