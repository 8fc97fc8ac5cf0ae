package access

import (
	"slices"
	"strings"
)

// Scope is what a token is for, and what an operation asks of its caller.
type Scope string

const (
	// Open asks for nothing, not even a token. No token has it.
	Open Scope = "open"
	// Read sees jobs, runs, results, logs and dead letters.
	Read Scope = "read"
	// Run starts, cancels, retries and redrives runs of the jobs that are there.
	Run Scope = "run"
	// Write creates, changes, pauses and deletes jobs.
	Write Scope = "write"
	// Work takes runs from a queue, with their payloads, and says how they ended.
	Work Scope = "work"
	// Admin makes and revokes tokens, keeps secrets and takes backups.
	Admin Scope = "admin"
)

// Scopes are those that a token may have.
var Scopes = []Scope{Read, Run, Write, Work, Admin}

// implied are the scopes that come with another. Who may change a job can make it run at any moment, and must see what
// stands to change it well: to grant write without the other two would only look like less. Run alone sees nothing but the
// runs that it asked for, and work nothing but what it is given.
var implied = map[Scope][]Scope{
	Write: {Read, Run},
	Admin: {Read, Run, Write, Work},
}

// Grants tells whether these scopes suffice for what an operation asks. What asks for nothing known is granted to nobody.
func Grants(held []Scope, asked Scope) bool {
	if asked == Open {
		return true
	}
	return slices.Contains(Scopes, asked) && slices.ContainsFunc(held, func(s Scope) bool {
		return s == asked || slices.Contains(implied[s], asked)
	})
}

// ScopeNames lists the scopes that a token may have, for people.
func ScopeNames() string {
	names := make([]string, len(Scopes))
	for i, s := range Scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
