// Package engines replays what a simulated world did to its store against every engine, and compares the answers. The conformance suite asks
// of an engine what its author thought of; this asks what a whole scheduler asks in trouble, thousands of operations on the same items.
package engines
