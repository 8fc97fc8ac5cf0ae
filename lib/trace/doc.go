// Package trace follows a run from the request or tick that it began with to its target, over processes and queues.
//
// Truth: nothing. Traces are for looking, and no decision hangs on them. They may be lost, cut or off; what a trace costs where it is
// off is a comparison with nil.
//
// # What a trace is
//
// A Context names a span of a trace. It travels as a W3C traceparent, as AWS's X-Ray header, and in a run's record as 25 bytes. One
// run has one trace: that of the request that asked for it, or a new one that begins with the claim of its fire and links to the tick
// that claimed it. All attempts belong to it.
//
// # Who decides
//
// Whoever begins a trace decides whether it is recorded, by chance and Config.Ratio; all others follow. What nobody records and nobody
// outside has named is not carried: a run without a trace costs no byte.
//
// # Bounds
//
// A span has a bounded number of attributes, and a span that begins a process's part of a trace a bounded number of spans below it.
// Beyond that, what happens is not recorded, and what it calls joins the trace one level higher. Exporters drop what they cannot send.
package trace
