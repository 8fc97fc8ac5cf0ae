// Package dynamo keeps a store in one table of Amazon DynamoDB.
//
// The table is the only truth; the engine remembers nothing but how far this host's clock is from AWS's. An item of the store
// is an item of the table:
//
//	p    B  partition key
//	s    B  sort key; binary, since binary keys are ordered as unsigned bytes
//	n    N  version
//	v    B  value
//	a    N  attempt, where it is not 0
//	ttl  N  expiry in Unix seconds, where there is one; the table's TTL attribute
//
// There is no index and no scan.
//
// A write of one op is one conditional PutItem, UpdateItem or DeleteItem; of several, one TransactWriteItems, which costs twice
// as much. A failed condition hands back what stood there in the same step (ALL_OLD), so a conflict is never a guess, and an
// own earlier try is recognised by its attempt without a read.
//
// What goes wrong, and what is true then:
//
//   - A condition fails: nothing was written.
//   - DynamoDB throttles, or a transaction meets another one: nothing was written. It is tried again here a few times, with
//     growing waits that chance shortens; after that it is store.ErrThrottled.
//   - No answer, half an answer, or a 5xx: the write is sent once and not again, and store.ErrUnknown says that it may have
//     happened. The SDK's own retries are off: a second try of a conditional write meets the first one and reports a conflict
//     with itself, and of an unconditional one writes over what others wrote in between.
//   - Reads are tried again after anything that may pass.
//   - The process dies: what was sent may land up to minutes later, under its condition.
//
// It does not promise a snapshot over items, nor anything over Regions: claims from two active Regions of a global table would
// both hold.
package dynamo
