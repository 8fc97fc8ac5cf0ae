//go:build emulators

package azure_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/azure"
	"github.com/belfry-scheduler/belfry/lib/blob/blobtest"
)

// The account that every Azurite has, and its key, which Azure publishes.
const (
	account = "devstoreaccount1"
	key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

func address(t *testing.T) azure.Address {
	t.Helper()
	at := os.Getenv("BELFRY_TEST_AZURE")
	if at == "" {
		t.Fatal("BELFRY_TEST_AZURE is not set: run these tests by localstack/test")
	}
	return azure.Address{Container: fmt.Sprintf("test-%016x", rand.Uint64()), Account: account, Endpoint: at + "/" + account}
}

func TestConformance(t *testing.T) {
	shared, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential(address(t).Endpoint, shared, nil)
	if err != nil {
		t.Fatal(err)
	}
	blobtest.Run(t, func(t *testing.T) *blob.Bucket {
		a := address(t)
		if _, err := client.CreateContainer(t.Context(), a.Container, nil); err != nil {
			t.Fatal(err)
		}
		b, err := azure.Open(t.Context(), a, azure.Credentials{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	other := strings.Repeat("QUFB", 21) + "QUE="
	for name, row := range map[string]struct {
		c    azure.Credentials
		want string
	}{
		"no container": {azure.Credentials{Key: key}, "there is no container"},
		"another key":  {azure.Credentials{Key: other}, "correct AZURE_STORAGE_KEY"},
		"bad token":    {azure.Credentials{SAS: "?sv=2024-11-04&sig=x"}, "correct AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"},
	} {
		_, err := azure.Open(t.Context(), address(t), row.c)
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
