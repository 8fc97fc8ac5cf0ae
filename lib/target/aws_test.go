package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const reportARN = "arn:aws:lambda:eu-west-1:123456789012:function:report"

func awsSet(t *testing.T, call CallAWS, patterns string) *Set {
	t.Helper()
	arns, err := ParseARNPatterns(patterns)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Now: time.Now, AWS: call, ARNs: arns})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAWSSpecs(t *testing.T) {
	for name, c := range map[string]struct {
		spec  AWS
		field string // "" for a good one
	}{
		"function":                {AWS{ARN: reportARN}, ""},
		"async with a role":       {AWS{ARN: reportARN, Invoke: "async", RoleARN: "arn:aws:iam::123456789012:role/x"}, ""},
		"fair queue":              {AWS{ARN: "arn:aws:sqs:eu-west-1:123456789012:q", MessageGroup: "customer-7"}, ""},
		"bus":                     {AWS{ARN: "arn:aws:events:eu-west-1:123456789012:event-bus/b", Source: "shop", DetailType: "Daily report"}, ""},
		"no arn":                  {AWS{}, "aws.arn"},
		"another way":             {AWS{ARN: reportARN, Invoke: "Event"}, "aws.invoke"},
		"invoke of a queue":       {AWS{ARN: "arn:aws:sqs:eu-west-1:123456789012:q", Invoke: "async"}, "aws.invoke"},
		"group of a function":     {AWS{ARN: reportARN, MessageGroup: "x"}, "aws.message_group"},
		"group with a space":      {AWS{ARN: "arn:aws:sqs:eu-west-1:123456789012:q", MessageGroup: "a b"}, "aws.message_group"},
		"source of a topic":       {AWS{ARN: "arn:aws:sns:eu-west-1:123456789012:t", Source: "x"}, "aws.source"},
		"source of AWS":           {AWS{ARN: "arn:aws:events:eu-west-1:123456789012:event-bus/b", Source: "aws.ec2"}, "aws.source"},
		"long detail type":        {AWS{ARN: "arn:aws:events:eu-west-1:123456789012:event-bus/b", DetailType: strings.Repeat("x", 129)}, "aws.detail_type"},
		"role of another world":   {AWS{ARN: reportARN, RoleARN: "arn:aws-cn:iam::123456789012:role/x"}, "aws.role_arn"},
		"no arn, and a bad role":  {AWS{RoleARN: "x"}, "aws.arn aws.role_arn"},
		"detail type of a queue":  {AWS{ARN: "arn:aws:sqs:eu-west-1:123456789012:q", DetailType: "x"}, "aws.detail_type"},
		"message group of states": {AWS{ARN: "arn:aws:states:eu-west-1:123456789012:stateMachine:m", MessageGroup: "x"}, "aws.message_group"},
	} {
		if got := fieldsOf(Spec{AWS: &c.spec}.Validate()); got != c.field {
			t.Errorf("%s: wrong fields %q, want %q", name, got, c.field)
		}
	}
}

func TestP12_OnlyAllowedARNsAreCalled(t *testing.T) {
	called := 0
	s := awsSet(t, func(context.Context, AWS, Call) (Result, error) { called++; return Result{}, nil },
		"arn:aws:lambda:*:123456789012:function:{tenant}-*,arn:aws:iam::123456789012:role/{tenant}")
	for _, row := range []struct {
		arn, role string
		allowed   bool
	}{
		{"arn:aws:lambda:eu-west-1:123456789012:function:acme-report", "", true},
		{"arn:aws:lambda:eu-west-1:123456789012:function:acme-report", "arn:aws:iam::123456789012:role/acme", true},
		{"arn:aws:lambda:eu-west-1:123456789012:function:rival-report", "", false},
		{"arn:aws:lambda:eu-west-1:123456789012:function:acme-report", "arn:aws:iam::123456789012:role/rival", false},
	} {
		called = 0
		_, err := s.Call(t.Context(), Spec{AWS: &AWS{ARN: row.arn, RoleARN: row.role}}, Call{Tenant: "acme"})
		var f *Failure
		switch {
		case row.allowed && (err != nil || called != 1):
			t.Errorf("%v: called %d times, %v", row, called, err)
		case !row.allowed && (called != 0 || !errors.As(err, &f) || f.Kind != KindRefused || !f.Permanent):
			t.Errorf("%v: called %d times, %v, want refused for good", row, called, err)
		}
	}
}

func TestAWSTargetsNeedAWorkerThatHasThem(t *testing.T) {
	for name, s := range map[string]*Set{
		"no caller":   awsSet(t, nil, "arn:aws:*:*:*:*"),
		"no patterns": awsSet(t, func(context.Context, AWS, Call) (Result, error) { return Result{}, nil }, ""),
	} {
		_, err := s.Call(t.Context(), Spec{AWS: &AWS{ARN: reportARN}}, Call{Tenant: "acme"})
		if !errors.Is(err, ErrNotHere) || !strings.Contains(err.Error(), "--aws-target") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHowACallOfAWSEnds(t *testing.T) {
	told := Reported(KindAWS, "ThrottlingException", false, time.Second)
	lost := errors.New("broken pipe")
	for name, c := range map[string]struct {
		call CallAWS
		kind string
	}{
		"a verdict":         {func(context.Context, AWS, Call) (Result, error) { return Result{}, told }, KindAWS},
		"nobody knows":      {func(context.Context, AWS, Call) (Result, error) { return Result{}, lost }, KindLost},
		"its time was over": {func(context.Context, AWS, Call) (Result, error) { return Result{}, lost }, KindTimeout},
		"its time was over before": {func(ctx context.Context, _ AWS, _ Call) (Result, error) {
			return Result{}, fmt.Errorf("%w: %w", ErrUnsent, context.Canceled)
		}, KindConnect},
	} {
		ctx, end := timedOut(t)
		call := func(ctx context.Context, to AWS, asked Call) (Result, error) {
			if strings.HasPrefix(name, "its time was over") {
				end()
			}
			return c.call(ctx, to, asked)
		}
		_, err := awsSet(t, call, "arn:aws:*:*:*:*").Call(ctx, Spec{AWS: &AWS{ARN: reportARN}}, Call{Tenant: "acme"})
		var f *Failure
		if !errors.As(err, &f) || f.Kind != c.kind {
			t.Errorf("%s: %v, want %s", name, err, c.kind)
		}
	}
	s := awsSet(t, func(context.Context, AWS, Call) (Result, error) {
		return Result{Body: make([]byte, MaxResultBytes+1)}, nil
	}, "arn:aws:*:*:*:*")
	if got, err := s.Call(t.Context(), Spec{AWS: &AWS{ARN: reportARN}}, Call{}); err != nil || len(got.Body) != MaxResultBytes || !got.Truncated {
		t.Errorf("%d bytes, cut %v, %v", len(got.Body), got.Truncated, err)
	}
}

func TestTheEnvelopeTellsOfTheAttempt(t *testing.T) {
	call := Call{Tenant: "acme", Run: "report~0mi8xk2p0", Job: "report", Attempt: 2, Fence: 1<<63 + 1, Nominal: time.Date(2026, 11, 21, 10, 0, 0, 0, time.FixedZone("", 3600))}
	const about = `{"belfry":{"run":"report~0mi8xk2p0","job":"report","attempt":2,"fence":9223372036854775809,"nominal_time":"2026-11-21T09:00:00Z","idempotency_key":"report~0mi8xk2p0"}`
	for payload, want := range map[string]string{
		``:                                     about + `}`,
		` {} `:                                 about + `}`,
		`{"a": 12345678901234567890, "b": []}`: about + `,"a": 12345678901234567890, "b": []}`,
		"{\n \"a\": {\"belfry\": 1}}":          about + ",\"a\": {\"belfry\": 1}}",
		`[1, 2]`:                               about + `,"payload":[1, 2]}`,
		`"text"`:                               about + `,"payload":"text"}`,
		`null`:                                 about + `,"payload":null}`,
	} {
		call.Payload = []byte(payload)
		got, err := call.Envelope()
		if err != nil || string(got) != want || !json.Valid(got) {
			t.Errorf("%s became %s, %v, want %s", payload, got, err, want)
		}
	}
	for _, payload := range []string{`{"belfry": 1}`, `{"b\u0065lfry": 1}`, `{"a": `, `text`} {
		call.Payload = []byte(payload)
		_, err := call.Envelope()
		var f *Failure
		if !errors.As(err, &f) || f.Kind != KindPayload || !f.Permanent {
			t.Errorf("%s: %v, want a payload that is refused for good", payload, err)
		}
	}
	call.Payload, call.AtMostOnce = nil, true
	if got, err := call.Envelope(); err != nil || strings.Contains(string(got), "idempotency_key") {
		t.Errorf("at most once: %s, %v", got, err)
	}
}
