// Package wire is the HTTP API's JSON, as Go types: what package api answers and what package client reads. It knows
// nothing of either, so that a program that only calls Belfry links no server.
//
// Durations are text ("90s"), times RFC 3339 in UTC. A thing has its name or ID at the top, and names another by its
// kind: job, run, gate. What GET gives of a job, PUT takes: what only Belfry writes stands under "status", which PUT accepts and ignores.
package wire
