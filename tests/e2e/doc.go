// Package e2e uses a deployed stack from outside: its HTTP API, its functions and queues by AWS's own requests, and an HTTP target that
// its jobs call. It knows nothing of the code behind. The stack may stand in an emulator or in AWS: the environment says where, as
// localstack/deploy prints it and localstack/e2e sets it.
//
//	BELFRY_STACK, BELFRY_ADDRESS    the stack, and where its API is
//	BELFRY_API_KEY                  a key of it; without one, requests are signed with the AWS credentials of the environment
//	BELFRY_SECOND_STACK, …          another stack in the same account, which nobody ticks but its own schedule
//	BELFRY_DEPLOY                   a command that updates a stack: its name, and parameters as NAME=VALUE, are added to it
//	BELFRY_TARGET                   HOST:PORT that the tests listen on and the functions reach
//	BELFRY_BINARY                   the command belfry, whose console shows the stack
//	AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
package e2e
