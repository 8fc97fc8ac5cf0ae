// Package awstarget makes the calls of aws targets: one request to Lambda, SQS, SNS, EventBridge or Step Functions an attempt, as the
// worker's own role or as the one that the job names.
//
// What holds:
//
//   - One call is at most one request to the service. The SDK's retries are off, and connections speak HTTP/1.1, which Go sends once:
//     Belfry itself decides on another attempt, and under "at most once" there is none.
//   - Where a service drops repeated requests by itself, it is told what to know them by, the same on every attempt of a run: FIFO
//     queues and topics by their deduplication ID, state machines by the name of the execution. The tenant is part of both, so that
//     no tenant's run is taken for another's (P12).
//   - A *target.Failure says that the request was not carried out, or that the function failed. Any other error means that nobody
//     knows, answers of 5xx included: their services say so themselves.
//   - Credentials of a role are asked for before the target is spoken to, remembered for each tenant and role until shortly before
//     they end, and told with the external ID "belfry:TENANT", by which the role's owner tells tenants apart.
//
// What operators let jobs name is not decided here but by package target (Config.ARNs).
package awstarget
