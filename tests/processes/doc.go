// Package processes starts the real binary several times over one table, and lets its processes serve, tick and work at once: on
// emulators of DynamoDB, SQS and S3, under the build tag emulators (make deep-emulators). They are killed, stopped and cut off in the
// middle of their work. It also runs each example of the command line's reference that wants these engines.
package processes
