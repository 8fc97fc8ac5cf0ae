// Package blob keeps what is too large for a record: payloads, results and logs, in a bucket of gocloud.dev/blob.
//
// Truth: the record. It holds the key; a blob that no record names is garbage, which goes when it expires. So the order is
// always Put, then the record's write: a crash in between leaves garbage, never a record that points at nothing.
//
// A blob is written once and never changed. Its key names the tenant, the day after which the blob may go, and the hash of
// its content:
//
//	b/2026-12-21/acme/payload/3f/report~0mi8xk2p0#7XACtDnprIRfIjV9giusFA
//
// What holds:
//   - what Put has acknowledged is durable (P1), if the bucket's driver is durable when a write is closed. The file driver
//     that comes with gocloud is not; package blob/local has one that is;
//   - of concurrent Puts under one Ref, one content wins, and the others are told. Putting the same content again gives the
//     same key, so that a Put whose answer was lost may be repeated;
//   - Get gives exactly what was put under that key, or an error: never a torn, flipped or exchanged blob (fault 49). A part of one, which
//     GetRange gives, is as the bucket has it: the hash in the key is that of the whole, by which who has all parts checks them;
//   - a tenant reads and deletes by its own keys alone; the key of another is as good as none (P12).
//
// Beside them lies what is not ended yet, to be read meanwhile: PutLive writes it over and over, at a place that its Ref tells, and GetLive
// reads what was written last. No record names it, and nothing depends on it.
//
// What does not: a delete may be undone by a power cut, a Put that gave an error may have happened, and a blob is gone
// from the day after its expiry on, whoever still names it. Callers choose an expiry later than the record's.
package blob
