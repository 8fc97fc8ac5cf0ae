// Package azure opens containers of Azure Blob Storage, and of what speaks like it. It keeps what it has answered for, and creates a
// blob where none stands as one step (If-None-Match), which is all that package blob asks of an engine.
package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Address says which container is meant.
type Address struct {
	Container string
	Account   string
	Endpoint  string // of the account, where it is not https://ACCOUNT.blob.core.windows.net
}

var (
	containers = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){2,62}$`)
	accounts   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
)

// ParseURL reads an address such as azblob://container?account=name, with &endpoint=http://127.0.0.1:10000/name for an emulator.
// account is used where the address names none.
func ParseURL(text, account string) (Address, error) {
	wrong := invalid.Field("blob", text, "azblob://CONTAINER?account=NAME, with &endpoint=https://… where it is not the usual one")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "azblob" || u.Opaque != "" || u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Address{}, wrong
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || len(u.Host) > 63 || !containers.MatchString(u.Host) {
		return Address{}, wrong
	}
	for name, values := range query {
		if name != "account" && name != "endpoint" || len(values) != 1 {
			return Address{}, wrong
		}
	}
	a := Address{Container: u.Host, Account: account, Endpoint: query.Get("endpoint")}
	if query.Has("account") {
		a.Account = query.Get("account")
	}
	if !accounts.MatchString(a.Account) {
		return Address{}, invalid.Field("blob account", a.Account, "the name of the storage account, as in azblob://"+a.Container+"?account=NAME, or AZURE_STORAGE_ACCOUNT")
	}
	if a.Endpoint != "" {
		e, err := url.Parse(a.Endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.RawQuery != "" {
			return Address{}, invalid.Field("blob endpoint", a.Endpoint, "an address such as http://127.0.0.1:10000/"+a.Account)
		}
	}
	return a, nil
}

// Credentials are the account's key, or a token that it signed (SAS). Neither: the ways of Azure's own programs, among them the
// environment, a workload's or a machine's identity, and az login.
type Credentials struct{ Key, SAS string }

// Bounds of the client's own tries: what lasts longer is for the caller, who has other things to do meanwhile.
var tries = policy.RetryOptions{MaxRetries: 3, TryTimeout: 30 * time.Second, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 2 * time.Second}

const finding = 20 * time.Second // of credentials, and of a first answer

// Open gives the container, and makes sure that it is there and may be listed.
func Open(ctx context.Context, a Address, c Credentials) (*blob.Bucket, error) {
	client, err := dial(a, c)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", a.Container, err)
	}
	bucket, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", a.Container, err)
	}
	asking, cancel := context.WithTimeout(ctx, finding)
	defer cancel()
	if _, _, err := bucket.ListPage(asking, gocloud.FirstPageToken, 1, nil); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(explain(a, err), bucket.Close())
	}
	return blob.New(bucket), nil
}

func dial(a Address, c Credentials) (*container.Client, error) {
	at := a.Endpoint
	if at == "" {
		at = "https://" + a.Account + ".blob.core.windows.net"
	}
	at = strings.TrimSuffix(at, "/") + "/" + a.Container
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: tries}}
	switch {
	case c.Key != "":
		key, err := container.NewSharedKeyCredential(a.Account, c.Key)
		if err != nil {
			return nil, invalid.Missing("AZURE_STORAGE_KEY", "the account's key, in base64")
		}
		return container.NewClientWithSharedKeyCredential(at, key, options)
	case c.SAS != "":
		return container.NewClientWithNoCredential(at+"?"+strings.TrimPrefix(c.SAS, "?"), options)
	default:
		token, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, fmt.Errorf("find credentials: %w", err)
		}
		return container.NewClient(at, token, options)
	}
}

// explain says in one line what is wrong with a container, and what to do about it.
func explain(a Address, err error) error {
	place := fmt.Sprintf("container %q of the account %q", a.Container, a.Account)
	if a.Endpoint != "" {
		place += " at " + a.Endpoint
	}
	var name *net.DNSError
	var lost *net.OpError
	var unknown *azidentity.AuthenticationFailedError
	switch {
	case bloberror.HasCode(err, bloberror.ContainerNotFound):
		return fmt.Errorf("there is no %s: make it, or name another", place)
	case bloberror.HasCode(err, bloberror.AuthenticationFailed, bloberror.InvalidAuthenticationInfo, bloberror.NoAuthenticationInformation):
		return fmt.Errorf("%s: Azure does not accept the credentials: correct AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, which must be of this account", place)
	case bloberror.HasCode(err, bloberror.AuthorizationFailure): // of a firewall of the account; of Azurite, which says no more
		return fmt.Errorf("%s: Azure does not let this host in: correct AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or the account's network rules", place)
	case bloberror.HasCode(err, bloberror.AuthorizationPermissionMismatch, bloberror.InsufficientAccountPermissions, bloberror.AuthorizationServiceMismatch, bloberror.AuthorizationResourceTypeMismatch):
		return fmt.Errorf("%s: the credentials lack a right: give them the role Storage Blob Data Contributor on it", place)
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Errorf("there is no host %s: correct the account %q or the endpoint", name.Name, a.Account)
	case errors.As(err, &unknown) || strings.Contains(err.Error(), "DefaultAzureCredential"):
		return fmt.Errorf("%s: this host has no credentials for Azure: set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or sign in by az login", place)
	case errors.As(err, &lost):
		return fmt.Errorf("%s does not answer: see that it can be reached from here: %w", place, lost)
	}
	var said *azcore.ResponseError
	if errors.As(err, &said) {
		return fmt.Errorf("%s: %d %s", place, said.StatusCode, said.ErrorCode)
	}
	return fmt.Errorf("%s: %w", place, err)
}
