package target_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// FuzzARN reads anything as the ARN of a target, and as a pattern of what jobs may name. What is read says itself again, and a pattern
// without wildcards allows only what it says.
func FuzzARN(f *testing.F) {
	for _, text := range []string{"arn:aws:lambda:eu-west-1:123456789012:function:report:live", "arn:aws:sqs:eu-west-1:123456789012:q.fifo",
		"arn:aws:states:us-east-1:123456789012:stateMachine:s", "arn:aws:events:eu-central-1:123456789012:event-bus/b", "arn:aws-cn:sns:cn-north-1:123456789012:t"} {
		f.Add(text, strings.ReplaceAll(text, "123456789012", "*"))
	}
	f.Add("arn:aws:lambda:eu-west-1:123456789012:function:acme-x", "arn:*:lambda:eu-*:????????????:function:{tenant}-*")
	f.Fuzz(func(t *testing.T, text, pattern string) {
		arn, err := target.ParseARN(text)
		if err == nil {
			if said := strings.Join([]string{"arn", arn.Partition, arn.Service, arn.Region, arn.Account, arn.Resource}, ":"); said != text {
				t.Fatalf("%q was read as %+v, which is %q", text, arn, said)
			}
			if own, err := target.ParseARNPattern(text); err == nil && !own.Allows(text, "acme") {
				t.Fatalf("as a pattern %q does not allow itself", text)
			}
		} else if len(invalid.All(err)) == 0 {
			t.Fatalf("%q: %v, which names no field", text, err)
		}
		p, err := target.ParseARNPattern(pattern)
		if err != nil {
			return
		}
		if p.String() != pattern {
			t.Fatalf("%q was read as %q", pattern, p)
		}
		if p.Allows(text, "acme") && !strings.ContainsAny(pattern, "*?{") && text != pattern {
			t.Fatalf("%q allows %q", pattern, text)
		}
	})
}

// FuzzValue reads anything as a text that may be a secret, from a request and from a record. What is read is the same when it was
// written, in either form.
func FuzzValue(f *testing.F) {
	for _, text := range []string{`"plain"`, `{"secret": "hook-token"}`, `null`, `{"secret": ""}`, "\xa1\x01\x61s", "\x61s", "\xa0"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, form := range []struct {
			read  func([]byte, any) error
			write func(any) ([]byte, error)
		}{{json.Unmarshal, json.Marshal}, {cbor.Unmarshal, cbor.Marshal}} {
			var v target.Value
			if form.read(text, &v) != nil {
				continue
			}
			written, err := form.write(v)
			if err != nil {
				t.Fatalf("%+v was read and cannot be written: %v", v, err)
			}
			var again target.Value
			if err := form.read(written, &again); err != nil || !reflect.DeepEqual(again, v) {
				t.Fatalf("%+v was written as %q, and is read as %+v, %v", v, written, again, err)
			}
		}
	})
}
