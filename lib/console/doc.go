// Package console is Belfry's pages in a browser: a handler that any Go program can mount beside the API. The pages are a client of
// /v1 like any other and have no way around it.
//
// What the handler serves is the same for everybody and says nothing of anybody's jobs, so it asks for no token: the pages do, where
// the API refuses them. It reads nothing but what is embedded, and no request changes anything.
//
// The pages lie in web, and what make console makes of them in dist, which is committed: a clone builds with Go alone. .ci/console
// tells whether the two still go together. Everything that a page shows is text that somebody else may have written, so nothing of it
// can become markup: the pages make text nodes only, and the headers have browsers refuse any other way.
package console
