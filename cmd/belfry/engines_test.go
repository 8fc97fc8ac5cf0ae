package main

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/blob"
)

// What is wrong with how shared engines are named ends a command with exit code 2 and a line, before anybody is asked.
func TestWrongEnginesAreRefused(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AZURE_STORAGE_ACCOUNT": ""} {
		t.Setenv(name, value)
	}
	const engines = "--store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs"
	for command, want := range map[string]string{
		"serve":                                                                  "want --data DIR, or BELFRY_DATA; or --store",
		"serve --store dynamodb://belfry-table":                                  "--queue-url sqs://PREFIX and --blob s3://BUCKET together",
		"serve --data x --queue-url sqs://belfry":                                "together, or none of them",
		"serve --store pebble:///var/lib/belfry":                                 "is --data DIR",
		"serve --data x " + engines:                                              "want one of --data and --store",
		"serve --data x --no-ticks":                                              "want --store with them",
		"serve --data x --work default":                                          "want --store with them",
		"serve --data x --look-ahead 20s":                                        "want --store with them",
		"serve --no-work --work default " + engines:                              "want one of --work and --no-work",
		"serve --tick-every 3m " + engines:                                       "less than --look-ahead 2m30s",
		"serve --look-ahead 15m " + engines:                                      "want 2s to 14m",
		"serve --catch-up-rate 0 " + engines:                                     "want 1 to 1000 starts a second",
		"serve --data x --catch-up-rate 1001":                                    "want 1 to 1000 starts a second",
		"dev --catch-up-rate -1":                                                 "want 1 to 1000 starts a second",
		"tick --catch-up-rate 0 " + engines:                                      "want 1 to 1000 starts a second",
		"serve --shards 3 " + engines:                                            "want a power of two",
		"serve --queue gpu=2d " + engines:                                        "NAME=LONGEST",
		"serve --queue gpu --queue gpu=6h " + engines:                            "the queue was named before",
		"worker " + engines:                                                      "want --queue NAME",
		"worker --queue gpu --label a=b " + engines:                              "--label is for workers that a server lists",
		"worker --queue gpu --lease 20s":                                         "want --store with them",
		"serve --data x --on-failed a,acme=b,acme=c":                             `got "acme=c", want each tenant once: acme=b stands before it`,
		"serve --data x --on-failed a --on-failed b":                             `"--on-failed" flag: got "b", want one job for all tenants: a stands before it; TENANT=JOB is for one of them`,
		"tick --on-missed ACME=ops " + engines:                                   `"--on-missed" flag: got "ACME=ops", want JOB or TENANT=JOB`,
		"dev --on-recovered =ops":                                                `"--on-recovered" flag: got "=ops", want JOB or TENANT=JOB`,
		"dev --on-failed acme=":                                                  `got "acme=", want JOB or TENANT=JOB`,
		"dev --on-failed acme=a=b":                                               `got "acme=a=b", want JOB or TENANT=JOB`,
		"worker --queue gpu --on-failed ops":                                     "are the server's, unless the worker needs none: want --store with them",
		"tick":                                                                   "a server on a data folder ticks by itself",
		"tick --store dynamo://belfry --queue-url sqs://b --blob s3://blob":      "want dynamodb://TABLE",
		"tick --store dynamodb://belfry --queue-url gpu --blob s3://blob":        "want sqs://PREFIX",
		"tick --store dynamodb://belfry --queue-url sqs://b --blob ftp://b":      "azblob://CONTAINER or file:///DIR",
		"tick --store dynamodb://belfry --queue-url sqs://b --blob gs://b":       "want gs://BUCKET",
		"tick --store dynamodb://belfry --queue-url sqs://b --blob azblob://box": "AZURE_STORAGE_ACCOUNT",
		"table create":                                                           "want --store dynamodb://TABLE",
		"table check --store dynamodb://b":                                       "TABLE is 3 to 255 letters",
		"queue create":                                                           "want --queue-url sqs://PREFIX",
		"queue create --queue-url sqs://belfry --max-receives 1":                 "want 5 to 1000",
		"queue check --queue-url sqs://belfry --queue a.b":                       "SQS takes nothing else in a name",
		"store show --data x --store dynamodb://belfry k/":                       "want one of --data and --store",
		"token list --data x --store dynamodb://belfry":                          "want one of --data and --store",
		"doctor --data x " + engines:                                             "want one of --data and --store",
		"doctor --store dynamodb://belfry":                                       "together, or none of them",
	} {
		got := belfry(t, "", strings.Fields(command)...)
		if got.code != exitUsage || !strings.Contains(got.errors, want) || strings.Count(got.errors, "\n") > 2 {
			t.Errorf("belfry %s: exit code %d, want one line that says %q:\n%s", command, got.code, want, got.errors)
		}
	}
}

// TestVariablesThatFunctionsHaveToo: one environment serves processes and functions.
func TestVariablesThatFunctionsHaveToo(t *testing.T) {
	for name, value := range map[string]string{"BELFRY_STORE": "dynamodb://belfry-table", "BELFRY_QUEUE": "sqs://belfry", "BELFRY_BLOB": "s3://belfry-blobs",
		"BELFRY_QUEUES": "default=14m,gpu=6h,mail", "BELFRY_LOOK_AHEAD": "90s", "BELFRY_SHARDS": "32", "BELFRY_CATCH_UP_RATE": "7", "BELFRY_ON_FAILED": "tell-ops,acme=ops"} {
		t.Setenv(name, value)
	}
	for _, role := range []string{"serve", "tick", "worker"} {
		got := belfry(t, "", "config", "show", role)
		for _, want := range []string{"dynamodb://belfry-table", "sqs://belfry", "s3://belfry-blobs", "default=14m,gpu=6h,mail", "environment BELFRY_QUEUES", "tell-ops,acme=ops", "environment BELFRY_ON_FAILED"} {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%s has no %s: %s%s", role, want, got.out, got.errors)
			}
		}
		if role != "worker" && (!strings.Contains(got.out, "1m30s") || !strings.Contains(got.out, "environment BELFRY_CATCH_UP_RATE") || !strings.Contains(got.out, "environment BELFRY_SHARDS")) {
			t.Errorf("%s has another look-ahead, or other shards: %s", role, got.out)
		}
	}
}

func TestAFolderMayHoldTheBlobs(t *testing.T) {
	opened, err := openBlob(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Put(t.Context(), blob.Ref{Tenant: "default", Kind: blob.Log, ID: "x"}, []byte("log")); err != nil {
		t.Error(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
}
