#!/bin/sh
# What must be there before a stack is deployed into an emulator: a bucket for the archives of its functions, and a queue that
# jobs may call, for localstack/try. LocalStack runs this when it is ready; localstack/deploy runs it for other emulators. It
# may run again at any time.
set -eu
awslocal s3api head-bucket --bucket belfry-artifacts >/dev/null 2>&1 || awslocal s3api create-bucket --bucket belfry-artifacts >/dev/null
awslocal sqs create-queue --queue-name belfry-try >/dev/null
echo "Belfry: the bucket belfry-artifacts and the queue belfry-try are there."
