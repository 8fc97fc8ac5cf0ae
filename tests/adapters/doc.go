// Package adapters runs whole schedulers over the adapters of AWS, against emulators of DynamoDB and SQS, and through faults: requests
// that are throttled, answers that are lost, messages that are lost, doubled or unreadable, and processes that are killed in the middle
// of what they do. What is proven step by step stands in tests/protocol, and of each adapter by itself beside it. It is run by
// make deep-emulators.
package adapters
