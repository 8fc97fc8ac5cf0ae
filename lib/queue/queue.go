// Package queue is the port to the work queue: a priority-aware queue with visibility timeouts, in the terms of SQS.
//
// The store is the truth and the queue a hint: losing, doubling, delaying or reordering any message loses and doubles no
// run (promise P10). Engines prove themselves by queuetest.Run, which holds no switch on the engine.
package queue

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Limits are those of SQS (Amazon SQS message quotas in its Developer Guide); they bind every engine.
const (
	MaxBatch      = 10               // messages in one Send, Receive, Delete or Extend
	MaxDelay      = 15 * time.Minute // of a send
	MaxVisibility = 12 * time.Hour   // counted from the receipt
	MaxWait       = 20 * time.Second // of one Receive
	MaxBodyBytes  = 766 << 10        // bodies of one Send, together: SQS takes 1 MiB of text with attributes, and bytes grow by a third as text
)

// Turns is which priority, by rank, the highest 0, goes first at each of 16 turns. Its 1s and its 2 are the floors of normal and low; where
// none of that rank waits, the highest that does goes.
var Turns = [16]uint8{0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2}

// Priority orders work. Within a pool high goes before normal and normal before low, but each keeps a floor, so that low
// never starves.
type Priority string

// The priorities.
const (
	High   Priority = "high"
	Normal Priority = "normal"
	Low    Priority = "low"
)

// Priorities lists them, highest first.
var Priorities = []Priority{High, Normal, Low}

// Outgoing is a message to send.
type Outgoing struct {
	Body  []byte
	Delay time.Duration // 0 to MaxDelay: not received before it has passed, in whole seconds where the engine counts in them
	Group string        // the tenant: engines that can share fairly do it between groups

	// What the queue's own tools may show of the message. Belfry reads its body alone.
	Trace trace.Context // the span that it is part of; zero for none
	Fence uint64        // the fencing version that an attempt would start under; 0 for none
}

// Message is one delivery of a message.
type Message struct {
	Body     []byte
	Priority Priority
	Receipt  string // names this delivery, not the message: an old receipt changes nothing once a newer delivery stands
	Receives int    // how often the queue has handed it out, this time included. It counts deliveries, not attempts
	Sent     time.Time
}

// Depth is how many messages a queue holds, about.
type Depth struct {
	Ready   int64 // could be received now
	Delayed int64 // wait for their delay
	Taken   int64 // received, and neither deleted nor visible again: under way, or put off by Extend
}

// MaxLook is how many messages of each priority and state a Look has at most.
const MaxLook = 100

// Look is what a queue holds of one group, for people: its messages by rank of priority, the first of each, and how many there are. Only
// an engine that can list messages has it, which SQS cannot.
type Look struct {
	Depth   map[Priority]Depth
	Ready   [3][]Held // in the order in which they will be taken
	Delayed [3][]Held // by when they can be taken: the first of those that SortedOf tells of
	Taken   [3][]Held // by when they were taken

	SortedOf int // delayed messages of each priority, those that were sent first, that were put in order; 0 for all
}

// Held is a message that a queue holds. Nobody has it by looking.
type Held struct {
	Body     []byte
	Sent     time.Time
	Taken    time.Time // of one that is taken: when
	Back     time.Time // of one that is delayed or taken: when it can be received, unless it is settled before
	Ready    time.Time // of one that is ready: since when
	Receives int       // how often it was handed out
}

// Queue is the port: one named pool of work, with its three priorities. All methods may be called concurrently and obey
// their context.
//
// A message is handed out at least once, in no order that one may rely on. After a Receive it stays invisible for the
// visibility given, then it is handed out again unless it was deleted.
type Queue interface {
	// Send puts up to MaxBatch messages into the queue of one priority and gives one error each, nil where it was taken.
	// An error that wraps ErrFull says that the message was refused for load and was not taken; any other error of a message
	// leaves it open whether it was. The error of the call itself is for what kept the whole batch from being tried.
	Send(ctx context.Context, priority Priority, batch ...Outgoing) ([]error, error)

	// Receive takes up to max messages (1 to MaxBatch), waiting up to wait (0 to MaxWait) for the first one. None is no error.
	// Each stays invisible for the visibility (0 to MaxVisibility).
	Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]Message, error)

	// Delete removes messages, one error each. A receipt of an older delivery answers nil and removes nothing.
	Delete(ctx context.Context, batch ...Message) ([]error, error)

	// Extend sets the visibility of each from now on: 0 hands it back at once. One error each; an older receipt changes nothing.
	Extend(ctx context.Context, visibility time.Duration, batch ...Message) ([]error, error)

	// Depth tells how many messages there are, by priority. It may lag behind by a minute.
	Depth(ctx context.Context) (map[Priority]Depth, error)

	// Close wakes all waiting receivers. Later calls give ErrClosed.
	Close() error
}

// What a caller decides on.
var (
	// ErrFull says that the queue holds as much as it may: send later.
	ErrFull = errors.New("the queue is full")
	// ErrLimit says that a limit of this package was exceeded. Nothing was sent.
	ErrLimit = errors.New("over a limit of the queue")
	// ErrClosed says that the queue was closed.
	ErrClosed = errors.New("the queue is closed")
)
