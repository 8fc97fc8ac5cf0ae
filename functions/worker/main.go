// Command worker is the function that works on runs: SQS gives it their messages in batches.
package main

import (
	"context"
	"log/slog"
	"os"

	aws "github.com/aws/aws-lambda-go/lambda"

	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/lambda/work"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("the function does not start", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	host, err := lambda.Open(ctx, os.Getenv, os.Stdout)
	if err != nil {
		return err
	}
	handler, err := work.Handler(host)
	if err != nil {
		return err
	}
	aws.Start(handler)
	return nil
}
