package store

import "context"

// Portable is what a backup, a restore and a move to another engine need of an engine. It is a port of its own, and no part of
// Store: what runs jobs must never come to need a scan, which costs by what is stored and not by what is due. So only who moves
// whole stores is handed one. The engines of one machine implement it; DynamoDB has no read of one instant, but backups of its
// own.
type Portable interface {
	// Export calls each with every item as it stood at one instant, in any order, one at a time. The item is the callee's, which
	// may call the store meanwhile. An error of each ends the export and is given back as it is. All that is
	// given is durable, as what a Get gives.
	Export(ctx context.Context, each func(Item) error) error

	// Import puts items as they are, with their versions and attempts, over whatever stands. It is for a store that nobody else
	// uses: conditions of others do not see it. Durable on return.
	Import(ctx context.Context, items ...Item) error
}

// Engine is a store that can be moved as a whole.
type Engine interface {
	Store
	Portable
}
