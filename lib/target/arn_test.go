package target

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func TestGoodARNs(t *testing.T) {
	for text, name := range map[string]string{
		"arn:aws:lambda:eu-west-1:123456789012:function:report":                   "report",
		"arn:aws:lambda:eu-west-1:123456789012:function:report:$LATEST":           "report",
		"arn:aws:lambda:eu-west-1:123456789012:function:report:prod":              "report",
		"arn:aws:sqs:us-east-1:123456789012:orders":                               "orders",
		"arn:aws-cn:sqs:cn-north-1:123456789012:orders.fifo":                      "orders.fifo",
		"arn:aws-us-gov:sns:us-gov-west-1:123456789012:alerts":                    "alerts",
		"arn:aws:events:ap-southeast-2:123456789012:event-bus/default":            "default",
		"arn:aws:states:me-central-1:123456789012:stateMachine:nightly":           "nightly",
		"arn:aws:states:me-central-1:123456789012:stateMachine:nightly:live":      "nightly",
		"arn:aws:sqs:us-east-1:000000000000:" + strings.Repeat("q", 75) + ".fifo": strings.Repeat("q", 75) + ".fifo",
	} {
		a, err := ParseARN(text)
		if err != nil || a.Name() != name || a.FIFO() != strings.HasSuffix(text, ".fifo") {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
}

func TestBadARNsSayWhatWouldBeRight(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "an ARN such as",
		"report":                               "an ARN such as",
		"arn:aws:lambda:eu-west-1:12":          "an ARN such as",
		"ARN:aws:sqs:eu-west-1:123456789012:q": "an ARN such as",
		"arn:aws-iso:sqs:us-iso-east-1:123456789012:q":                  "the partition aws, aws-cn or aws-us-gov",
		"arn:aws:s3:::bucket":                                           "one of the services events, lambda, sns, sqs, states",
		"arn:aws:kinesis:eu-west-1:123456789012:stream/x":               "one of the services",
		"arn:aws:sqs::123456789012:q":                                   "a region",
		"arn:aws:sqs:evil.example.org/:123456789012:q":                  "a region",
		"arn:aws:sqs:EU-WEST-1:123456789012:q":                          "a region",
		"arn:aws:sqs:cn-north-1:123456789012:q":                         "the partition of its region, which is aws-cn",
		"arn:aws-us-gov:sqs:us-east-1:123456789012:q":                   "the partition of its region, which is aws",
		"arn:aws:sqs:eu-west-1:12345:q":                                 "12 digits",
		"arn:aws:sqs:eu-west-1::q":                                      "12 digits",
		"arn:aws:sqs:eu-west-1:123456789012:":                           "the name of an SQS queue",
		"arn:aws:sqs:eu-west-1:123456789012:q/../x":                     "the name of an SQS queue",
		"arn:aws:sqs:eu-west-1:123456789012:" + strings.Repeat("q", 81): "the name of an SQS queue",
		"arn:aws:lambda:eu-west-1:123456789012:report":                  "function:NAME",
		"arn:aws:lambda:eu-west-1:123456789012:function:a:b:c":          "function:NAME",
		"arn:aws:lambda:eu-west-1:123456789012:layer:a":                 "function:NAME",
		"arn:aws:sns:eu-west-1:123456789012:topic:6b0e71bd-7e97":        "without a subscription",
		"arn:aws:events:eu-west-1:123456789012:rule/default":            "event-bus/NAME",
		"arn:aws:states:eu-west-1:123456789012:execution:a:b":           "stateMachine:NAME",
	} {
		_, err := ParseARN(text)
		all := invalid.All(err)
		if len(all) != 1 || all[0].Field != "arn" || !strings.Contains(all[0].Want, want) {
			t.Errorf("%q gave %v, want the field arn and %q", text, err, want)
		}
	}
}

func TestRoles(t *testing.T) {
	to := ARN{Partition: "aws"}
	for _, good := range []string{"arn:aws:iam::123456789012:role/reports", "arn:aws:iam::123456789012:role/team/x/reports+=,.@-_"} {
		if err := validRole(good, to); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"reports", "arn:aws:iam::123456789012:user/reports", "arn:aws:iam:eu-west-1:123456789012:role/reports",
		"arn:aws:iam::12:role/reports", "arn:aws:iam::123456789012:role/", "arn:aws-cn:iam::123456789012:role/reports", "arn:aws:iam::123456789012:role/a b"} {
		if all := invalid.All(validRole(bad, to)); len(all) != 1 || all[0].Field != "role_arn" {
			t.Errorf("%s: %v", bad, all)
		}
	}
}

func TestP12_PatternsBoundWhatJobsName(t *testing.T) {
	for _, row := range []struct {
		pattern, arn string
		allowed      bool
	}{
		{"arn:aws:lambda:eu-west-1:123456789012:function:report", "arn:aws:lambda:eu-west-1:123456789012:function:report", true},
		{"arn:aws:lambda:eu-west-1:123456789012:function:report", "arn:aws:lambda:eu-west-1:123456789012:function:report2", false},
		{"arn:aws:lambda:eu-west-1:123456789012:function:report", "arn:aws:lambda:eu-west-1:123456789012:function:report:prod", false},
		{"arn:aws:lambda:*:123456789012:function:report*", "arn:aws:lambda:eu-west-1:123456789012:function:report:prod", true},
		{"arn:aws:lambda:*:123456789012:function:?", "arn:aws:lambda:eu-west-1:123456789012:function:a", true},
		{"arn:aws:lambda:*:123456789012:function:?", "arn:aws:lambda:eu-west-1:123456789012:function:ab", false},
		{"arn:aws:*:*:123456789012:*", "arn:aws:sqs:eu-west-1:123456789012:q", true},
		{"arn:aws:*:*:123456789012:*", "arn:aws:iam::123456789012:role/x", true},
		{"arn:aws:*:*:123456789012:*", "arn:aws:sqs:eu-west-1:999999999999:q", false},
		// No star reaches over a colon: the last of these has an account of its own in its resource.
		{"arn:aws:*:123456789012:*:*", "arn:aws:sqs:eu-west-1:123456789012:q", false},
		{"arn:aws:sqs:*:123456789012:*-ok", "arn:aws:sqs:eu-west-1:999999999999:123456789012:x-ok", false},
		{"arn:aws:sqs:*:*:{tenant}-*", "arn:aws:sqs:eu-west-1:123456789012:acme-orders", true},
		{"arn:aws:sqs:*:*:{tenant}-*", "arn:aws:sqs:eu-west-1:123456789012:rival-orders", false},
		{"arn:aws:sqs:*:*:a*b*c", "arn:aws:sqs:eu-west-1:123456789012:aXbYbZc", true},
		{"arn:aws:sqs:*:*:a*b*c", "arn:aws:sqs:eu-west-1:123456789012:aXbYbZd", false},
	} {
		p, err := ParseARNPattern(row.pattern)
		if err != nil || p.String() != row.pattern {
			t.Errorf("%s: %s, %v", row.pattern, p, err)
			continue
		}
		if got := p.Allows(row.arn, "acme"); got != row.allowed {
			t.Errorf("%s allows %s: %v, want %v", row.pattern, row.arn, got, row.allowed)
		}
	}
	for _, bad := range []string{"*", "arn:*", "arn:aws:sqs:*:*:", "aws:aws:sqs:*:*:x", "arn:aws:s3:*:*:x", "arn:aws:sqs:*:*:a b"} {
		if _, err := ParseARNPattern(bad); len(invalid.All(err)) != 1 {
			t.Errorf("%q gave %v", bad, err)
		}
	}
	if all, err := ParseARNPatterns(" arn:aws:sqs:*:*:a, arn:aws:sns:*:*:b,"); err != nil || len(all) != 2 {
		t.Errorf("two with a comma between them: %v, %v", all, err)
	}
}
