//go:build emulators

package gs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/blobtest"
	"github.com/belfry-scheduler/belfry/lib/blob/gs"
)

func endpoint(t *testing.T) string {
	t.Helper()
	at := os.Getenv("BELFRY_TEST_GCS")
	if at == "" {
		t.Fatal("BELFRY_TEST_GCS is not set: run these tests by localstack/test")
	}
	return at
}

func TestConformance(t *testing.T) {
	at := endpoint(t)
	client, err := storage.NewClient(t.Context(), option.WithEndpoint(at+"/storage/v1/"), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	blobtest.Run(t, func(t *testing.T) *blob.Bucket {
		a := gs.Address{Bucket: fmt.Sprintf("test-%016x", rand.Uint64()), Endpoint: at}
		if err := client.Bucket(a.Bucket).Create(t.Context(), "belfry", nil); err != nil {
			t.Fatal(err)
		}
		b, err := gs.Open(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

func TestABucketThatIsNotThere(t *testing.T) {
	_, err := gs.Open(t.Context(), gs.Address{Bucket: "test-nowhere", Endpoint: endpoint(t)})
	if err == nil || !strings.HasPrefix(err.Error(), `there is no bucket "test-nowhere"`) {
		t.Errorf("%v", err)
	}
}
