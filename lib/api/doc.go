// Package api is Belfry's HTTP API: the forms of package wire over the operations of package control. docs/api.md is its
// reference for people, and /openapi.json, made from the same Go types, for programs.
//
// The OpenAPI document is the truth about form. What it says of a parameter, header or body is what is checked, by one
// checker over its schemas (form.go), before any handler runs: unknown and doubled names are refused, letter case counts,
// null stands only where it is allowed. A request of the wrong form gets 400 with the code "malformed"; one of the right
// form whose meaning is wrong (a schedule that never fires, a queue that is not there) gets 422 with "invalid"; both name
// every field. Every other refusal has a code of its own. All errors are problem documents (RFC 9457), those for unknown
// paths and methods included.
//
// What a browser could be made to send is refused: a PUT, PATCH or POST carries JSON and says so, an Origin must be the one that
// the request was sent to, and with Config.Local the Host must name this machine, which keeps out web pages that point a
// name of theirs at it.
//
// Every request passes access.Gate before anything else is said: who calls, as which tenant, with which scopes, and whether
// there is room. A tenant comes from the caller's token alone; nothing in a request's path or body can name another. What
// the server says to callers without a good token is the same for every path. Each operation names the scope that it asks
// for, and one that names none is refused to everybody.
package api
