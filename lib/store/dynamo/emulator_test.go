//go:build emulators

// The engine against an emulator of DynamoDB: make test-emulators.

package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

var tables atomic.Int64

// emulated is a new table in the emulator.
func emulated(t *testing.T, client aws.HTTPClient) dynamo.Config {
	t.Helper()
	endpoint := os.Getenv("BELFRY_TEST_DYNAMODB")
	if endpoint == "" {
		t.Fatal("BELFRY_TEST_DYNAMODB is not set: want the endpoint of an emulator; run make test-emulators")
	}
	cfg := dynamo.Config{
		AWS: aws.Config{
			Region: "eu-central-1", HTTPClient: client,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			}),
		},
		Table: fmt.Sprint("belfry-", tables.Add(1)), Endpoint: endpoint, Random: rand.Uint64,
	}
	if err := dynamo.CreateTable(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func open(t *testing.T, cfg dynamo.Config) *dynamo.Store {
	t.Helper()
	s, err := dynamo.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, emulated(t, nil)) })
}
