// Package manifest reads what people write down of jobs, as YAML or JSON, and writes it.
//
// Both become a Value: JSON that remembers its lines, so that whoever judges it later, this program or a server far away, can
// say where a mistake stands. Nothing is lost or guessed on the way: a number keeps its digits, however many, a text its
// characters, and a name that is given twice is refused instead of one of the two being dropped.
//
// YAML is read after the core schema of version 1.2: yes, no, on and off are text, and so is 12:30. What versions of YAML
// disagree about, such as 007, is refused: the file shall mean the same to everybody. Anchors, aliases and merge keys (<<) are
// resolved, within a bound.
package manifest
