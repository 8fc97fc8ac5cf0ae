package s3_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/blob/s3"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]s3.Address{
		"s3://belfry-blobs":                                           {Bucket: "belfry-blobs"},
		"s3://belfry.blobs?region=eu-west-1":                          {Bucket: "belfry.blobs", Region: "eu-west-1"},
		"s3://belfry?region=us-east-1&endpoint=http://127.0.0.1:4566": {Bucket: "belfry", Region: "us-east-1", Endpoint: "http://127.0.0.1:4566"},
	} {
		if got, err := s3.ParseURL(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "s3:", "s3://", "s3:belfry", "http://belfry", "s3://belfry/folder", "s3://Belfry", "s3://be", "s3://me@belfry",
		"s3://belfry?regoin=eu-west-1", "s3://belfry?endpoint=127.0.0.1:4566", "s3://belfry?region=a&region=b"} {
		if got, err := s3.ParseURL(text); err == nil || !strings.HasPrefix(err.Error(), "blob") {
			t.Errorf("%q is %+v, %v, want an error that names it", text, got, err)
		}
	}
}

func TestARegionIsRequired(t *testing.T) {
	if _, err := s3.Open(t.Context(), aws.Config{}, s3.Address{Bucket: "belfry"}); err == nil || !strings.HasPrefix(err.Error(), "blob region: ") {
		t.Errorf("without a region: %v", err)
	}
}
