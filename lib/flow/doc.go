// Package flow is workflows: graphs of steps, each of which starts when the ends of those that it needs let it. It is pure: no store, no
// clock, no network. Package dispatch runs them.
//
// Truth: a Definition, as a user writes it. Check makes a Workflow of it, or says all that is wrong, each with its path. The form of a
// definition stands in one table of shapes, of which both Check and Schema are made. What a task calls is judged as the job that would do
// the same. A Workflow's own form, MarshalJSON, is checked to the same Workflow again.
//
// # The graph
//
// A node is one step: a task, scope, pass, fail or switch. A scope has a graph of its own; to its siblings it is one step. Nodes need only
// siblings, so the graph of each scope is ordered by itself. A switch is a parent of each node that it leads to.
//
// Nodes stand in one order that does not depend on how they were written: a scope before what is in it, a node behind those that it needs,
// and else by name. So an index names a node within one version of a definition.
//
// # What is decided
//
// Rule.Decide says of a node whether it runs, from nothing but the final states of the nodes that it needs. Before all of these have ended
// it says so only where no end of the others can change it. Hence neither the order of ends nor a delay or crash makes a difference, and
// all who decide agree. A scope with a
// condition is asked first; its fact says whether it runs, and its end follows from its steps. Workflow.Plan decides a whole graph from what is known of its nodes; skips are derived, not stored. Workflow.Walk decides
// what follows from one end for somebody who has read few others.
// A failure that a clause of a catch takes is none to the whole, and a skip to those that need the node: who handles it follows from the facts too, of which the
// code of a failure is one.
// Workflow.Simulate plays a graph in virtual time with made-up outcomes.
//
// # What is read
//
// Expressions stand in inputs, conditions and the output; package expression parses and evaluates them. Check finds the nodes that each names: those before its
// own, which have ended when it is evaluated, but for what Unsure tells. An Evaluation evaluates one text over Facts: what the run brings, and what its nodes
// have come to and given. The result of a pass or a scope is not kept anywhere, since it is made of those before it, or in it.
//
// # What it does not do
//
// It draws nothing (package flow/picture). What later versions bring is refused by its name, so that no definition changes its meaning.
package flow
