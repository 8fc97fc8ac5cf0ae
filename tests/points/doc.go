// Package points kills a process at a named point of its work, for tests of what a crash there leaves. It wraps a store and queues: just
// before or just after a commit, a send or an acknowledgement of the kind that the environment names, the process sends itself SIGKILL.
//
// Nothing in the product knows of it. A test builds the binary with `go build -overlay`, by which two files have other imports and two
// lines more (see Overlay); what such a binary links besides is this package.
//
// A point is WHEN-OF:WHAT, such as before-commit:claim, amid-commit:fence or after-send. What a commit is stands in commit.go: it is
// read from what is written. "Amid" is for writes of several items, each on its own, of which half are done.
package points
