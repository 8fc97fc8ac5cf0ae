// Package gateway puts API Gateway in front of Belfry's API: events of a REST API become requests to the very handler that a server
// has, and answers become those of a function.
//
// # Who calls
//
// API Gateway finds out, by the way that the stack was given, and says it in the context of the request, which no caller can write.
// What stands there is all that counts: no header names a tenant. Where the context names nobody, because a method was left open by
// mistake, the request is refused.
//
//	iam      the signature of an AWS identity. Policies of IAM decide what it may call
//	api-key  the key of a usage plan. It may read, run and write
//	jwt      a token of an issuer, which the same function verifies before, as the API's authorizer. Its claims name tenant and scopes
//
// # When a step fails
//
// The request's time is what is left of the invocation, so that it is answered within it. An answer larger than Lambda passes on is
// refused with a problem that says so. An issuer whose keys cannot be had lets nobody in, and is asked again with the next request.
package gateway
