// Package expression is jq as workflows take it: expressions that pick out and shape JSON, behind a fence. It is pure: no clock, no environment, no
// files. The parser and the interpreter are those of gojq.
//
// # The fence
//
// jq can run for ever and can make a terabyte of one letter. So an expression is looked at before it is kept: of jq's syntax and functions it may use
// only what is listed (fence.go, functions.go), and what is left out is refused by its name. Nothing in the list repeats by itself, knows the time, reads
// files or stops the process.
//
// What is left could still grow: each doubling of a value costs five characters. So while an expression is evaluated two things are counted. The
// interpreter asks before each of its instructions whether it may go on, which counts those. And whatever looks at more than one value in a single
// instruction, such as a sort, a comparison or an addition, is rewritten so that it tells first how much it is about to look at or copy. Where it
// would fail of the kind of a value, it is rewritten so that this is found out before (kinds.go): an error of the interpreter goes through the whole of what it
// shows. A third count is of the memory that values take which are made of JSON, before they are made (decode.go). All
// counts are the same on every machine, so an expression that is over its budget once is so always: it fails. No clock decides that. Whoever evaluates may
// end an evaluation by its context, which is no failure of the expression: what a text that is too slow again and again comes to is up to that.
//
// A generator is what counts can miss: the interpreter goes on inside of the call or object in which that stands, and what was done before is not done again.
// So each function is paid for inside of its call, or has a call of its own for each value of its argument, and each object is paid for once it is there.
//
// What comes of an expression is the same on every machine, too. So of the functions of mathematics only those are taken that are exact or are rounded as IEEE 754
// says, and powers are reckoned here.
//
// # What an expression may read
//
// Its input is an object of which it has to say by name what it reads: .input, .run, or .steps.NAME and a field of that. Parse finds out by looking at
// the expression what these are, so nothing else need be fetched, and a name that is not there is found before anything runs. An expression that hands on
// its input as a whole could read anything, so it is refused.
package expression
