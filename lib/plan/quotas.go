package plan

// Quota is a limit of AWS, as its documentation has it.
type Quota struct {
	Name  string  `json:"name"` // as the console of Service Quotas calls it, or the documentation where that has none
	Value float64 `json:"value"`
	Fixed bool    `json:"fixed"` // it cannot be raised
	Page  string  `json:"page"`
}

// QuotasRead is when the pages were read.
const QuotasRead = "November 2026"

// The quotas that a load may come upon.
var (
	keyWrites    = Quota{"DynamoDB: write units a second of one partition", 1000, true, "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"}
	keyReads     = Quota{"DynamoDB: read units a second of one partition", 3000, true, "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"}
	newWrites    = Quota{"DynamoDB: write units a second of a new table", 4000, false, "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"}
	newReads     = Quota{"DynamoDB: read units a second of a new table", 12000, false, "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"}
	tableWrites  = Quota{"DynamoDB: Table-level write throughput limit", 40_000, false, "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"}
	tableReads   = Quota{"DynamoDB: Table-level read throughput limit", 40_000, false, "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"}
	newAccount   = Quota{"Lambda: Concurrent executions, of a new account", 10, false, "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"}
	concurrent   = Quota{"Lambda: Concurrent executions (L-B99A9384)", 1000, false, "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"}
	started      = Quota{"Lambda: functions started in 10 s, of one function", 1000, true, "https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html"}
	pollersFirst = Quota{"Lambda: functions that one queue begins with, in standard mode", 5, true, "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"}
	pollersMost  = Quota{"Lambda: functions that one queue has at most, in standard mode", 1250, true, "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"}
	pollers      = Quota{"Lambda: functions that one queue adds in a minute, in standard mode", 300, true, "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"}
	perFunction  = Quota{"Lambda: invocations a second of one function that runs", 10, true, "https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html"}
	inFlight     = Quota{"SQS: messages in flight of a standard queue", 120_000, false, "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html"}
	gatewayRate  = Quota{"API Gateway: Throttle rate", 10_000, false, "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"}
	objectWrites = Quota{"S3: writes a second of one prefix", 3500, true, "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"}
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
