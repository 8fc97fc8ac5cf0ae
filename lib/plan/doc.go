// Package plan says what a load needs of a stack on AWS: shards and ticks, worker functions, units of the table and of its hottest keys,
// quotas to raise, and the monthly bill; and what would bend first if the load grew.
//
// # Truth
//
// What a run takes is counted (package cost). How the protocol cuts its work, buckets, pages, partitions, batches, is read from the packages
// that do it, as constants of theirs. Quotas are AWS's published ones (quotas.go, each with its page). How long a request takes, and how
// much of a CPU a tick needs for a run, are assumptions of the price file: they are said wherever a figure rests on them.
//
// # What is not known
//
// No tick, worker or bill of this was measured on AWS. The pace of a tick is requests in a row times what one is assumed to take, or its
// CPU, whichever is less; DynamoDB may split a hot partition by itself, which is not counted on; Lambda may be slower to start functions than
// its quota says.
//
// Everything here is a function of its arguments.
package plan
