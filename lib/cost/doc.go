// Package cost says what runs cost on AWS: units that were counted, prices with their date, and bills of both.
//
// # Truth
//
// units.json is what tests/cost counts while the domain works over decorators that know AWS's rules: an Amount for each kind of run, and
// one for a minute in which nothing is due. That test writes the file, and fails where it is not what is counted now. prices.json has the
// prices of one region on one day, what the template makes of a stack, and what is assumed where nothing can be counted. Nobody else has a
// figure of his own: docs/cost.md and `belfry plan` are made of these two files.
//
// # What it does not promise
//
// That a bill is what AWS will charge. Nothing here was billed, and each assumption has its reason beside it.
package cost
