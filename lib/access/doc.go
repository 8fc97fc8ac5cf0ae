// Package access says who may do what.
//
// A Token is a credential: 256 random bits with an ID, of which the store keeps the SHA-256 alone. It names a tenant, and a
// request's tenant comes from its token and from nowhere else. It has scopes (read, run, write, work, admin), and each
// operation of the API asks for one; scope.go says which scope brings which others.
//
// Two items make a token, written together: token#ID holds it, and tokens / TENANT/ID says that the tenant has it. So a
// request costs one Get at most, a list one Query, and neither reads what belongs to another tenant. The first item is the
// truth; both expire 30 days after the token has ended, and a token that is not found lets nobody in.
//
// What was read of a token counts for CacheFor. A revocation therefore holds at once in the process that carried it out and
// within CacheFor in all others. While the store cannot be asked, nobody is let in whose token was not seen within CacheFor:
// the error is the store's and says nothing of the token.
//
// A Gate stands in front of the operations: it lets callers in by their tokens, slows down each token to its rate and each
// address that gives wrong ones, and bounds how many requests are under way. All that it remembers is bounded, whatever
// callers make up.
//
// A session is a token that was made of another one, its parent, for a browser to keep: for at most SessionFor and never beyond
// its parent's end, with no scope that its parent does not have, and never admin. It shares the bounds of its parent, no
// session can be made of it, and it lets nobody in once its parent does not.
//
// What it does not do: it does not keep a token's holder from using all that its tenant has. There are no rights on single
// jobs.
package access
