//go:build emulators

package engines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

func TestDynamoDBAnswersAsMemory(t *testing.T) {
	endpoint := os.Getenv("BELFRY_TEST_DYNAMODB")
	if endpoint == "" {
		t.Fatal("BELFRY_TEST_DYNAMODB is not set: want the endpoint of an emulator; run make deep-emulators")
	}
	for n, recording := range recorded(t, 4_000) {
		cfg := dynamo.Config{
			AWS: aws.Config{Region: "eu-central-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			})},
			Table: fmt.Sprintf("belfry-engines-%d", n), Endpoint: endpoint, Random: rand.Uint64,
		}
		if err := dynamo.CreateTable(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		s, err := dynamo.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		agrees(t, s, recording)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
