package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/target/awstarget"
)

// awsTargets are the ARNs that jobs may name, as a flag: none unless somebody says so.
type awsTargets []target.ARNPattern

// flags are of whatever calls targets.
func (a *awsTargets) flags(cmd *cobra.Command) {
	cmd.Flags().Var(a, "aws-target", "`PATTERN` of the ARNs that aws jobs may name, roles too, such as arn:aws:lambda:*:123456789012:function:report-*; more than once or with commas for several")
	called(cmd.Flags(), "aws-target", "BELFRY_TARGET_ARNS")
}

// open gives what calls AWS as this host's credentials allow, nil where no job may.
func (a *awsTargets) open(ctx context.Context) (target.CallAWS, error) {
	if len(*a) == 0 {
		return nil, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("the AWS configuration of this host: %w", err)
	}
	return awstarget.New(cfg).Call, nil
}

// Set adds what a flag says; commas separate several.
func (a *awsTargets) Set(text string) error {
	all, err := target.ParseARNPatterns(text)
	if err != nil {
		return misused("%w", err)
	}
	*a = append(*a, all...)
	return nil
}

// Append adds one.
func (a *awsTargets) Append(text string) error { return a.Set(text) }

// Replace puts others in place of all.
func (a *awsTargets) Replace(texts []string) error {
	all := awsTargets{}
	if err := all.Set(strings.Join(texts, ",")); err != nil {
		return err
	}
	*a = all
	return nil
}

// GetSlice gives them as they are written.
func (a *awsTargets) GetSlice() []string {
	texts := make([]string, len(*a))
	for i, pattern := range *a {
		texts[i] = pattern.String()
	}
	return texts
}

func (a *awsTargets) String() string { return strings.Join(a.GetSlice(), ",") }

// Type names the flag's kind for programs.
func (a *awsTargets) Type() string { return "patterns" }
