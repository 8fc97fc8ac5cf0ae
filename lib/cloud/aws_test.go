package cloud_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/cloud"
)

// A function finds in its environment what the SDK would find there.
func TestTheEnvironmentOfAFunctionIsEnough(t *testing.T) {
	for name, more := range map[string]map[string]string{
		"as Lambda has it":                {"AWS_SESSION_TOKEN": "token"},
		"an emulator":                     {"AWS_ENDPOINT_URL": "http://localhost:4566", "AWS_ENDPOINT_URL_SQS": "http://localhost:9324"},
		"endpoints that are not to count": {"AWS_ENDPOINT_URL": "http://localhost:4566", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
		"tuned":                           {"AWS_MAX_ATTEMPTS": "7", "AWS_RETRY_MODE": "adaptive", "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required", "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled", "AWS_SDK_UA_APP_ID": "belfry", "AWS_DEFAULTS_MODE": "standard"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
				"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_SESSION_TOKEN": ""} {
				t.Setenv(variable, value)
			}
			for variable, value := range more {
				t.Setenv(variable, value)
			}
			want, err := cloud.Host(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := cloud.Environment(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			key, err := got.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := want.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if key.AccessKeyID != wanted.AccessKeyID || key.SecretAccessKey != wanted.SecretAccessKey || key.SessionToken != wanted.SessionToken {
				t.Errorf("got the key %+v, want %+v", key, wanted)
			}
			if got.Region != want.Region || aws.ToString(got.BaseEndpoint) != aws.ToString(want.BaseEndpoint) || got.RetryMode != want.RetryMode || got.RetryMaxAttempts != want.RetryMaxAttempts ||
				got.AppID != want.AppID || got.DefaultsMode != want.DefaultsMode || got.AccountIDEndpointMode != want.AccountIDEndpointMode ||
				got.RequestChecksumCalculation != want.RequestChecksumCalculation || got.ResponseChecksumValidation != want.ResponseChecksumValidation {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if _, err := cloud.Environment(t.Context()); err == nil {
		t.Error("an environment without keys is taken")
	}
}
