//go:build emulators

package sqs_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// open makes the three queues of a fresh pool on the emulator, and a Queue whose requests go through the transport, nil for none.
func open(t *testing.T, through func(http.RoundTripper) http.RoundTripper) *sqs.Queue {
	t.Helper()
	endpoint := os.Getenv("BELFRY_TEST_SQS")
	if endpoint == "" {
		t.Fatal("BELFRY_TEST_SQS is not set: run these tests by localstack/test")
	}
	cfg := awsConfig()
	client := awssqs.NewFromConfig(cfg, func(o *awssqs.Options) { o.BaseEndpoint = aws.String(endpoint) })
	prefix := fmt.Sprintf("test-%016x", rand.Uint64())
	for _, p := range queue.Priorities {
		if _, err := client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String(prefix + "-" + string(p))}); err != nil {
			t.Fatal(err)
		}
	}
	if through != nil {
		cfg.HTTPClient = &http.Client{Transport: through(http.DefaultTransport)}
	}
	q, err := sqs.New(sqs.Config{Address: sqs.Address{Prefix: prefix, Endpoint: endpoint}, AWS: cfg, Rand: rand.Float64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}
