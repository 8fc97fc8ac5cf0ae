// Package gs opens buckets of Google Cloud Storage, and of what speaks like it. It keeps what it has answered for, and creates an
// object where none stands as one step (ifGenerationMatch=0), which is all that package blob asks of an engine.
package gs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"cloud.google.com/go/storage"
	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Address says which bucket is meant.
type Address struct {
	Bucket   string
	Endpoint string // of an emulator, which is asked without credentials; "" for Google's
}

var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// ParseURL reads an address such as gs://bucket, or gs://bucket?endpoint=http://127.0.0.1:4443 for an emulator.
func ParseURL(text string) (Address, error) {
	wrong := invalid.Field("blob", text, "gs://BUCKET, with ?endpoint=http://… where it is an emulator")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "gs" || u.Opaque != "" || u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Address{}, wrong
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !names.MatchString(u.Host) {
		return Address{}, wrong
	}
	for name, values := range query {
		if name != "endpoint" || len(values) != 1 {
			return Address{}, wrong
		}
	}
	a := Address{Bucket: u.Host, Endpoint: query.Get("endpoint")}
	if a.Endpoint != "" {
		e, err := url.Parse(a.Endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" {
			return Address{}, invalid.Field("blob endpoint", a.Endpoint, "an address such as http://127.0.0.1:4443")
		}
	}
	return a, nil
}

const (
	finding = 10 * time.Second // of credentials, and of a first answer
	// answering is how long the beginning of an answer may take: then a connection is likelier dead than its answer late.
	answering = 30 * time.Second
)

// Open gives the bucket, with the credentials that Google's programs use (Application Default Credentials), and makes sure that it
// is there and may be listed.
func Open(ctx context.Context, a Address) (*blob.Bucket, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answering
	client := gcp.NewAnonymousHTTPClient(transport)
	options := &gcsblob.Options{ClientOptions: []option.ClientOption{storage.WithJSONReads()}}
	if a.Endpoint != "" {
		options.ClientOptions = append(options.ClientOptions, option.WithEndpoint(a.Endpoint+"/storage/v1/"))
	} else {
		found, err := gcp.DefaultCredentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("bucket %q: this host has no credentials for Google Cloud: set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or sign in by gcloud auth application-default login", a.Bucket)
		}
		if client, err = gcp.NewHTTPClient(transport, gcp.CredentialsTokenSource(found)); err != nil {
			return nil, fmt.Errorf("open bucket %s: %w", a.Bucket, err)
		}
	}
	bucket, err := gcsblob.OpenBucket(ctx, client, a.Bucket, options)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", a.Bucket, err)
	}
	asking, cancel := context.WithTimeout(ctx, finding)
	defer cancel()
	if _, _, err := bucket.ListPage(asking, gocloud.FirstPageToken, 1, nil); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(explain(a, err), bucket.Close())
	}
	return blob.New(bucket), nil
}

// explain says in one line what is wrong with a bucket, and what to do about it.
func explain(a Address, err error) error {
	place := fmt.Sprintf("bucket %q", a.Bucket)
	if a.Endpoint != "" {
		place += " at " + a.Endpoint
	}
	status := 0
	var said *googleapi.Error
	if errors.As(err, &said) {
		status = said.Code
	}
	var lost *net.OpError
	switch {
	case errors.Is(err, storage.ErrBucketNotExist) || status == http.StatusNotFound:
		return fmt.Errorf("there is no %s: make it, or name another", place)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s: the credentials lack a right, or it belongs to somebody else: give them the role Storage Object User on it", place)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s: Google does not accept the credentials: renew them, or name others by GOOGLE_APPLICATION_CREDENTIALS", place)
	case errors.As(err, &lost):
		return fmt.Errorf("%s does not answer: see that it can be reached from here: %w", place, lost)
	}
	return fmt.Errorf("%s: %w", place, err)
}
