// Package lambda runs Belfry's domain in AWS Lambda: it opens what a function stands on, and turns events into calls of the domain.
// It decides nothing about a run. Package gateway below it has what only the function behind API Gateway needs.
//
// # One invocation
//
//	event -> messages of one queue -> worker.Pass -> what is not done goes back -> flush
//
// The worker takes its messages from the event, and not from the queue; what becomes of each is told to the queue at once, save for
// those that are done: Lambda deletes them when the function has answered. The answer lists what is not to be deleted.
//
// # Time
//
// An invocation has the time of its context. Attempts are stopped a margin before it ends, and handed back: they count as neither
// failure nor crash, and their messages are visible again. A run whose timeout is longer than what is left is not started. Nothing
// runs between two invocations: each waits for all that it has begun.
//
// # When a step fails
//
//   - The function does not start: every message waits in its queue. The error is one line in the function's log.
//   - The process dies: no message of the batch is deleted. Those whose runs had ended come again and are dropped; the leases of the
//     others run out, as on any worker.
//   - The answer is lost: the same.
//   - A queue gives a message up, after so many receives: it goes to the dead-letter queue, whose function sees to its run.
//
// # What it does not promise
//
// That a message is seen once, or by one function.
package lambda
