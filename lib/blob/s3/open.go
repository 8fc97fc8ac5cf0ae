// Package s3 opens buckets of Amazon S3, and of what speaks like it. S3 keeps what it has answered for, and creates an object where
// none stands as one step (If-None-Match), which is all that package blob asks of an engine.
package s3

import (
	"context"
	"fmt"
	"net/url"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Address says which bucket is meant.
type Address struct {
	Bucket   string
	Region   string // "" for that of the AWS configuration
	Endpoint string // of an emulator or another service; "" for that of AWS
}

var names = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// ParseURL reads an address such as s3://bucket?region=eu-west-1&endpoint=http://127.0.0.1:7070.
func ParseURL(text string) (Address, error) {
	wrong := invalid.Field("blob", text, `s3://BUCKET, with ?region=… and &endpoint=http://… where they are not the usual ones`)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Opaque != "" || u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Address{}, wrong
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !names.MatchString(u.Host) {
		return Address{}, wrong
	}
	for name, values := range query {
		if name != "region" && name != "endpoint" || len(values) != 1 {
			return Address{}, wrong
		}
	}
	a := Address{Bucket: u.Host, Region: query.Get("region"), Endpoint: query.Get("endpoint")}
	if a.Endpoint != "" {
		e, err := url.Parse(a.Endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" {
			return Address{}, invalid.Field("blob endpoint", a.Endpoint, "an address such as http://127.0.0.1:7070")
		}
	}
	return a, nil
}

// Open gives the bucket, which must be there: the first request to it tells.
func Open(ctx context.Context, cfg aws.Config, a Address) (*blob.Bucket, error) {
	if a.Region == "" {
		a.Region = cfg.Region
	}
	if a.Region == "" {
		return nil, invalid.Missing("blob region", "the AWS region of the bucket, as in s3://"+a.Bucket+"?region=eu-west-1, or AWS_REGION")
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.Region = a.Region
		if a.Endpoint != "" {
			o.BaseEndpoint = aws.String(a.Endpoint)
			o.UsePathStyle = true // emulators have no name for each bucket
		}
	})
	bucket, err := s3blob.OpenBucket(ctx, client, a.Bucket, nil)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", a.Bucket, err)
	}
	return blob.New(bucket), nil
}
