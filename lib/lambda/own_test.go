package lambda

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// However wide the operator's patterns are, no job reaches the functions and queues of the stack: they believe what they are told of
// callers and tenants.
func TestP12_NoJobCallsTheStackItself(t *testing.T) {
	all, err := target.ParseARNPatterns("arn:aws:*:*:123456789012:*")
	if err != nil {
		t.Fatal(err)
	}
	s := Settings{Stack: "prod", Queue: "sqs://prod?region=eu-west-1", Pools: []cloud.Pool{{Name: "default"}, {Name: "gpu"}}, ARNs: all}
	called := 0
	outward := s.Outward(func(context.Context, target.AWS, target.Call) (target.Result, error) {
		called++
		return target.Result{}, nil
	})
	for resource, own := range map[string]bool{
		"lambda:eu-west-1:123456789012:function:prod-api":              true,
		"lambda:eu-west-1:123456789012:function:prod-tick":             true,
		"lambda:eu-west-1:123456789012:function:prod-worker:$LATEST":   true,
		"lambda:us-east-1:123456789012:function:prod-deadletter:alias": true,
		"lambda:eu-west-1:123456789012:function:prod-report":           false,
		"lambda:eu-west-1:123456789012:function:dev-api":               false,
		"sqs:eu-west-1:123456789012:prod-default-high":                 true,
		"sqs:eu-west-1:123456789012:prod-gpu-low":                      true,
		"sqs:eu-west-1:123456789012:prod-dead":                         true,
		"sqs:eu-west-1:123456789012:prod-ticks":                        true,
		"sqs:eu-west-1:123456789012:prod-try":                          false,
		"sqs:eu-west-1:123456789012:work":                              false,
		"sns:eu-west-1:123456789012:prod-dead":                         false,
	} {
		arn := "arn:aws:" + resource
		if err := s.Can("default", target.Spec{AWS: &target.AWS{ARN: arn}}); (err != nil) != own || own && !strings.Contains(err.Error(), arn) {
			t.Errorf("%s is put: %v", arn, err)
		}
		called = 0
		_, err := outward(t.Context(), target.AWS{ARN: arn}, target.Call{Tenant: "acme"})
		var f *target.Failure
		switch {
		case own && (called != 0 || !errors.As(err, &f) || f.Kind != target.KindRefused || !f.Permanent):
			t.Errorf("%s is called %d times: %v", arn, called, err)
		case !own && (called != 1 || err != nil):
			t.Errorf("%s is called %d times: %v", arn, called, err)
		}
	}
}

// A function sends no mail, and says what does.
func TestFunctionsSendNoMail(t *testing.T) {
	mail := target.Spec{Email: &target.Email{To: []string{"ops@example.org"}}}
	if err := (Settings{}).Can("default", mail); err == nil || !strings.Contains(err.Error(), "SNS") {
		t.Error(err)
	}
	if err := (Settings{}).Can("elsewhere", mail); err != nil {
		t.Error(err)
	}
}
