package sqs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// A template whose parameters are texts writes maxReceiveCount as one, and SQS tells it as it was written.
func TestWhatBecomesOfWhatNobodyTakesIsRead(t *testing.T) {
	for policy, want := range map[string]sqs.Setup{
		`{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:test-dead","maxReceiveCount":10}`:   {Dead: "arn:aws:sqs:eu-west-1:1:test-dead", Receives: 10},
		`{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:test-dead","maxReceiveCount":"10"}`: {Dead: "arn:aws:sqs:eu-west-1:1:test-dead", Receives: 10},
		"": {},
	} {
		cfg := awsConfig()
		cfg.HTTPClient = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetQueueUrl") {
				return reply(http.StatusOK, map[string]string{"QueueUrl": "http://queue/test"}), nil
			}
			attributes := map[string]string{}
			if policy != "" {
				attributes["RedrivePolicy"] = policy
			}
			return reply(http.StatusOK, map[string]any{"Attributes": attributes}), nil
		})}
		all, err := sqs.Describe(t.Context(), sqs.Config{Address: sqs.Address{Prefix: "test"}, AWS: cfg, Rand: func() float64 { return 0 }})
		if err != nil || len(all) != 3 {
			t.Fatalf("%s: got %v, %v", policy, all, err)
		}
		for _, got := range all {
			if got.Err != nil || got.Dead != want.Dead || got.Receives != want.Receives {
				t.Errorf("%s: %s is given up to %q after %d (%v), want %q after %d", policy, got.Name, got.Dead, got.Receives, got.Err, want.Dead, want.Receives)
			}
		}
	}
}
