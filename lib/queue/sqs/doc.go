// Package sqs is the queue over Amazon SQS: one pool is three standard queues, PREFIX-high, PREFIX-normal and PREFIX-low.
//
// # Sending
//
// Bodies are base64, since SQS takes text. A call makes one request, or several where 256 KiB are exceeded; SQS bills each 64 KiB,
// so that splitting costs nothing, and older emulators take no more. Entries that SQS refuses for a moment are sent again, alone.
// A request that was not answered is sent again whole: its messages may come twice, which the port allows. The group of a message
// is its MessageGroupId, by which SQS shares fairly between tenants. The trace and the fencing version are attributes, for X-Ray and
// for people; nothing here reads them.
//
// # Receiving
//
// Each priority has at most one request under way, a long poll of 20 s that belongs to the Queue and not to the call that began
// it: it goes on when that call has its messages from another priority, and serves a later one. To cancel it would lose whatever
// SQS hands out at that moment, until its visibility ends; to begin three anew for each call would triple the price. So an idle
// pool costs 3 requests in 20 s, whoever waits however long, and a busy one 1 request for 10 messages.
//
// A call asks the highest priority first, and the next when that has not answered within a moment (grace): then it is empty.
// Of 16 calls in a row 3 ask for normal and 1 for low as well, whatever high has. These are the floors.
//
// What arrives while nobody waits is kept for a moment (hold) and then handed back. Where a kept message is served, or one that
// was asked for with another visibility, its visibility is set anew first.
//
// # Settling
//
// Deletes and changes of visibility by concurrent callers wait for each other for a moment (linger) and go in requests of ten. A
// receipt that is not the newest one changes nothing, and that is no error.
//
// # Failing
//
// Each request has a time limit of its own. What may pass is tried again, with full jitter, while the caller's context lasts;
// what would fail again fails at once, with a line that says what to do. A priority that cannot be asked is left out for a
// while, so that a missing queue does not hold up the other two.
package sqs
