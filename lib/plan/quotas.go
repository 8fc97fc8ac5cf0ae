package plan

// QuotasRead is when the pages were read.
const QuotasRead = "November 2026"

// The quotas that a load may come upon.
var (
	keyWrites    = Quota{Name: "DynamoDB: write units a second of one partition", Value: 1000, Fixed: true, Page: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"}
	keyReads     = Quota{Name: "DynamoDB: read units a second of one partition", Value: 3000, Fixed: true, Page: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"}
	newWrites    = Quota{Name: "DynamoDB: write units a second of a new table", Value: 4000, Page: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"}
	newReads     = Quota{Name: "DynamoDB: read units a second of a new table", Value: 12000, Page: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"}
	tableWrites  = Quota{Name: "DynamoDB: Table-level write throughput limit", Value: 40_000, Page: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"}
	tableReads   = Quota{Name: "DynamoDB: Table-level read throughput limit", Value: 40_000, Page: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"}
	newAccount   = Quota{Name: "Lambda: Concurrent executions, of a new account", Value: 10, Page: "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"}
	concurrent   = Quota{Name: "Lambda: Concurrent executions (L-B99A9384)", Value: 1000, Page: "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"}
	started      = Quota{Name: "Lambda: functions started in 10 s, of one function", Value: 1000, Fixed: true, Page: "https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html"}
	pollersFirst = Quota{Name: "Lambda: functions that one queue begins with, in standard mode", Value: 5, Fixed: true, Page: "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"}
	pollersMost  = Quota{Name: "Lambda: functions that one queue has at most, in standard mode", Value: 1250, Fixed: true, Page: "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"}
	pollers      = Quota{Name: "Lambda: functions that one queue adds in a minute, in standard mode", Value: 300, Fixed: true, Page: "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"}
	perFunction  = Quota{Name: "Lambda: invocations a second of one function that runs", Value: 10, Fixed: true, Page: "https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html"}
	inFlight     = Quota{Name: "SQS: messages in flight of a standard queue", Value: 120_000, Page: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html"}
	gatewayRate  = Quota{Name: "API Gateway: Throttle rate", Value: 10_000, Page: "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"}
	objectWrites = Quota{Name: "S3: writes a second of one prefix", Value: 3500, Fixed: true, Page: "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"}
)

// Growth is how many functions Lambda adds to a queue in a minute.
var Growth = pollers.Value

// cpuMB is the memory at which a function has one whole CPU: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
const cpuMB = 1769

// Quotas are all of them.
func Quotas() []Quota {
	return []Quota{newAccount, concurrent, started, pollersFirst, pollers, pollersMost, perFunction, newWrites, newReads, tableWrites, tableReads, keyWrites, keyReads, inFlight,
		gatewayRate, objectWrites}
}
