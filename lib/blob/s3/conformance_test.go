//go:build emulators

package s3_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/blobtest"
	"github.com/belfry-scheduler/belfry/lib/blob/s3"
)

func TestConformance(t *testing.T) { conform(t, "BELFRY_TEST_S3") }

// conform holds the adapter to the port on the emulator whose endpoint a variable names.
func conform(t *testing.T, variable string) {
	endpoint := os.Getenv(variable)
	if endpoint == "" {
		t.Fatalf("%s is not set: run these tests by localstack/test", variable)
	}
	cfg := aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "testtest"}, nil
	})}
	client := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(endpoint), true })
	blobtest.Run(t, func(t *testing.T) *blob.Bucket {
		a := s3.Address{Bucket: fmt.Sprintf("test-%016x", rand.Uint64()), Endpoint: endpoint}
		if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(a.Bucket)}); err != nil {
			t.Fatal(err)
		}
		b, err := s3.Open(t.Context(), cfg, a)
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}
