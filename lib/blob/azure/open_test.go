package azure_test

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/blob/azure"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]azure.Address{
		"azblob://belfry-blobs?account=acme1": {Container: "belfry-blobs", Account: "acme1"},
		"azblob://belfry":                     {Container: "belfry", Account: "usual"},
		"azblob://belfry?account=acme&endpoint=http://127.0.0.1:10000/acme": {Container: "belfry", Account: "acme", Endpoint: "http://127.0.0.1:10000/acme"},
	} {
		if got, err := azure.ParseURL(text, "usual"); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "azblob:", "azblob://", "s3://belfry", "azblob://belfry/folder", "azblob://Belfry", "azblob://be", "azblob://a--b",
		"azblob://me@belfry", "azblob://belfry?acount=x", "azblob://belfry?account=Not-One", "azblob://belfry?account=", "azblob://belfry?endpoint=127.0.0.1:10000"} {
		if got, err := azure.ParseURL(text, "usual"); err == nil || !strings.HasPrefix(err.Error(), "blob") {
			t.Errorf("%q is %+v, %v, want an error that names it", text, got, err)
		}
	}
	if _, err := azure.ParseURL("azblob://belfry", ""); err == nil || !strings.HasPrefix(err.Error(), "blob account: ") {
		t.Errorf("without an account: %v", err)
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	key := strings.Repeat("QUFB", 21) + "QUE="
	for name, row := range map[string]struct {
		c    azure.Credentials
		at   string
		want string
	}{
		"a key that is none": {azure.Credentials{Key: "hush!"}, "", "AZURE_STORAGE_KEY"},
		"nobody listens":     {azure.Credentials{Key: key}, "http://127.0.0.1:9/acme", "does not answer"},
	} {
		_, err := azure.Open(t.Context(), azure.Address{Container: "belfry", Account: "acme", Endpoint: row.at}, row.c)
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}
