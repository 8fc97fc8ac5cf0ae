package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Account gives region, credentials and endpoints: Host or Environment.
type Account func(context.Context) (aws.Config, error)

// Host looks for them as the SDK does on any host: in the environment, in files, and with services that give credentials.
func Host(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return cfg, fmt.Errorf("the AWS configuration of this host: %w", err)
	}
	return cfg, nil
}

// Environment takes them from the environment alone, as Lambda gives them to each function, and otherwise does what Host does. A program that has no use for Host links
// none of the ways to sign in that this knows: they are more than a megabyte.
func Environment(context.Context) (aws.Config, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return aws.Config{}, fmt.Errorf("the AWS configuration in the environment: %w", err)
	}
	if !env.Credentials.HasKeys() {
		return aws.Config{}, errors.New("the AWS configuration in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; Lambda sets them")
	}
	cfg := aws.Config{
		Region: env.Region, Credentials: credentials.StaticCredentialsProvider{Value: env.Credentials}, ConfigSources: []any{env},
		RetryMode: env.RetryMode, RetryMaxAttempts: env.RetryMaxAttempts, AppID: env.AppID,
		// What the SDK takes where the environment does not say it.
		DefaultsMode:               cmp.Or(env.DefaultsMode, aws.DefaultsModeLegacy),
		AccountIDEndpointMode:      cmp.Or(env.AccountIDEndpointMode, aws.AccountIDEndpointModePreferred),
		RequestChecksumCalculation: cmp.Or(env.RequestChecksumCalculation, aws.RequestChecksumCalculationWhenSupported),
		ResponseChecksumValidation: cmp.Or(env.ResponseChecksumValidation, aws.ResponseChecksumValidationWhenSupported),
	}
	if env.BaseEndpoint != "" && !aws.ToBool(env.IgnoreConfiguredEndpoints) {
		cfg.BaseEndpoint = aws.String(env.BaseEndpoint)
	}
	return cfg, nil
}
