package template

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// What CloudFormation lets through as a parameter, the functions take. Else a stack is deployed of which no function starts.
func TestFunctionsTakeWhatParametersAllow(t *testing.T) {
	stack := named(t, "template.yaml")
	arns := func(text string) error { _, err := target.ParseARNPatterns(text); return err }
	pool := func(text string) error { _, err := cloud.ParsePools("default=14m," + text); return err }
	callee := func(text string) error { _, err := dispatch.ParseDefaultCallee(text); return err }
	issuer := func(text string) error {
		given := map[string]string{"BELFRY_STORE": "dynamodb://t", "BELFRY_QUEUE": "sqs://q", "BELFRY_BLOB": "s3://b", "BELFRY_AUTH": "jwt",
			"BELFRY_JWT_AUDIENCE": "belfry", "BELFRY_JWT_ISSUER": text}
		_, err := lambda.Read(func(name string) string { return given[name] })
		return err
	}
	const work = "arn:aws:sqs:eu-central-1:123456789012:work"
	for _, c := range []struct {
		parameter string
		takes     func(string) error
		right     []string
		wrong     []string
	}{
		{"Tenant", access.ValidTenant, []string{"default", "acme-1.eu", strings.Repeat("a", 63)}, []string{"", "Acme", "-a", "a b", strings.Repeat("a", 64)}},
		{"Pool1", pool, []string{"", "gpu", "gpu=6h", "gpu=24h", "mail=90m", "quick=30s", "Big_one-2"},
			[]string{"gpu=", "gpu=h", "gpu=6", "gpu=0h", "gpu=48h", "gpu=1h30", "g.pu", "gpu,mail", "-gpu"}},
		{"TargetArns", arns, []string{"", work, work + ",arn:aws-us-gov:lambda:*:*:function:report-*", "arn:aws:states:*:123456789012:stateMachine:a"},
			[]string{"work", "arn:aws:sqs", "arn:aws:s3:::bucket", work + ",", work + ", " + work, work + ",other", "arn:aws:sqs:*:*:{tenant}"}},
		{"RoleArns", arns, []string{"", "arn:aws:iam::123456789012:role/reports", "arn:aws:iam::123456789012:role/a,arn:aws:iam::123456789012:role/team/*"},
			[]string{"reports", "arn:aws:iam::123456789012:user/a", work, "arn:aws:iam::123456789012:role/a,"}},
		{"OnFailed", callee, []string{"", "tell-ops", "acme=ops", "acme-1.eu=Ops.1"}, []string{"acme=", "=ops", "Acme=ops", "tell ops", "ops,", "a,b", "-ops", "a=b=c", "acme:ops"}},
		{"JwtIssuer", issuer, []string{"https://issuer.example", "https://issuer.example/pool"},
			[]string{"http://issuer.example", "https://", "https:///pool", "https://issuer.example?a=b", "https://issuer.example#a"}},
	} {
		pattern := regexp.MustCompile("^(?:" + stack.Parameters[c.parameter].AllowedPattern + ")$")
		for _, text := range c.right {
			if err := c.takes(text); !pattern.MatchString(text) || err != nil {
				t.Errorf("%s=%q is refused, by the template or by the functions: %v", c.parameter, text, err)
			}
		}
		for _, text := range c.wrong {
			if pattern.MatchString(text) {
				t.Errorf("%s=%q is let through, of which the functions say: %v", c.parameter, text, c.takes(text))
			}
		}
	}
	for _, other := range []string{"OnMissed", "OnRecovered"} {
		if stack.Parameters[other].AllowedPattern != stack.Parameters["OnFailed"].AllowedPattern {
			t.Errorf("%s allows something else than OnFailed", other)
		}
	}
	for _, other := range []string{"Pool2", "Pool3", "Pool4"} {
		if stack.Parameters[other].AllowedPattern != stack.Parameters["Pool1"].AllowedPattern {
			t.Errorf("%s allows something else than Pool1", other)
		}
	}
	shards := stack.Parameters["Shards"].AllowedValues
	if len(shards) == 0 {
		t.Error("Shards may be anything, and a store is cut into a power of two")
	}
	for _, n := range shards {
		if count, ok := n.(int); !ok || !(timer.Layout{Shards: count}).Valid() {
			t.Errorf("Shards=%s: no store can be cut so", fmt.Sprint(n))
		}
	}
}
