package store

import (
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Size is what an item counts for in the limits: partition, sort key and value.
func (i Item) Size() int { return len(i.Partition) + len(i.Sort) + len(i.Value) }

// CheckKeys holds the limits of a Get or Peek. Engines call it before anything else; so they do with its siblings here.
func CheckKeys(keys []Key) error {
	if len(keys) > MaxKeys {
		return fmt.Errorf("%d keys in one call, at most %d: %w", len(keys), MaxKeys, ErrTooLarge)
	}
	for i := range keys {
		if err := checkKey(keys[i]); err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
	}
	return nil
}

// CheckWrite holds the limits of a Write.
func CheckWrite(ops []Op) error {
	if len(ops) > MaxOps {
		return fmt.Errorf("%d ops in one write, at most %d: %w", len(ops), MaxOps, ErrTooLarge)
	}
	total, err := checkOps(ops, true)
	if err != nil {
		return err
	}
	if total > MaxOpsBytes {
		return fmt.Errorf("%d bytes in one write, at most %d: %w", total, MaxOpsBytes, ErrTooLarge)
	}
	return nil
}

// CheckEach holds the limits of a WriteEach.
func CheckEach(ops []Op) error {
	if len(ops) > MaxEach {
		return fmt.Errorf("%d ops in one call, at most %d: %w", len(ops), MaxEach, ErrTooLarge)
	}
	_, err := checkOps(ops, false)
	return err
}

func checkOps(ops []Op, checks bool) (total int, err error) {
	for i := range ops {
		op := &ops[i]
		if err := checkOp(op, checks); err != nil {
			return 0, fmt.Errorf("op %d: %w", i, err)
		}
		total += len(op.Key.Partition) + len(op.Key.Sort)
		if op.Kind == Put {
			total += len(op.Value)
		}
	}
	if first, again, ok := twice(ops); ok {
		return 0, fmt.Errorf("op %d: the key of op %d again, want each key once in a call: %w", again, first, ErrTooLarge)
	}
	return total, nil
}

func checkOp(op *Op, checks bool) error {
	if err := checkKey(op.Key); err != nil {
		return err
	}
	switch {
	case op.Kind != Put && op.Kind != Delete && op.Kind != Check:
		return fmt.Errorf("kind %d, want Put, Delete or Check: %w", op.Kind, ErrTooLarge)
	case op.Kind == Check && !checks:
		return fmt.Errorf("a Check, which only Write can hold: %w", ErrTooLarge)
	case op.If.kind == condVersion && op.If.version == 0:
		return fmt.Errorf("condition version=0, want at least 1, or Absent: %w", ErrTooLarge)
	}
	if op.Kind == Put {
		if n := len(op.Key.Partition) + len(op.Key.Sort) + len(op.Value); n > MaxItemBytes {
			return fmt.Errorf("an item of %d bytes, at most %d: %w", n, MaxItemBytes, ErrTooLarge)
		}
	}
	return nil
}

func checkKey(k Key) error {
	if n := len(k.Partition); n == 0 || n > MaxPartition {
		return fmt.Errorf("a partition key of %d bytes, want 1 to %d: %w", n, MaxPartition, ErrTooLarge)
	}
	if n := len(k.Sort); n == 0 || n > MaxSort {
		return fmt.Errorf("a sort key of %d bytes, want 1 to %d: %w", n, MaxSort, ErrTooLarge)
	}
	return nil
}

// few is up to where comparing each key with each is quicker than a map.
const few = 12

// twice finds a key that two ops share.
func twice(ops []Op) (first, again int, ok bool) {
	if len(ops) <= few {
		for again := range ops {
			for first := range again {
				if ops[first].Key == ops[again].Key {
					return first, again, true
				}
			}
		}
		return 0, 0, false
	}
	seen := newKeys(ops)
	for again := range ops {
		if first := seen.first(again); first != again {
			return first, again, true
		}
	}
	return 0, 0, false
}

// Once leaves the first of the ops that share a key, since a call may name a key once. at is, of each op, its place among them.
func Once(ops []Op) (once []Op, at []int) {
	at = make([]int, len(ops))
	seen := newKeys(ops)
	for i := range ops {
		first := seen.first(i)
		switch {
		case first != i:
			if once == nil {
				once = append(make([]Op, 0, len(ops)), ops[:i]...)
			}
			at[i] = at[first]
		case once == nil:
			at[i] = i
		default:
			at[i] = len(once)
			once = append(once, ops[i])
		}
	}
	if once == nil {
		once = ops
	}
	return once, at
}

// keys tells which ops share a key, as a map would, without one.
type keys struct {
	ops   []Op
	table []int32 // the place of an op and one, at its key's hash or behind it; 0: free
}

func newKeys(ops []Op) keys {
	return keys{ops: ops, table: make([]int32, 1<<bits.Len(uint(2*len(ops))))}
}

// first gives the first op that has the key of the op at i, which is i where none before it does. It is to be asked in order.
func (k keys) first(i int) int {
	key := &k.ops[i].Key
	mask := uint64(len(k.table) - 1)
	for at := (xxhash.Sum64String(key.Sort) ^ xxhash.Sum64String(key.Partition)) & mask; ; at = (at + 1) & mask {
		switch n := k.table[at]; {
		case n == 0:
			k.table[at] = int32(i + 1)
			return i
		case k.ops[n-1].Key == *key:
			return int(n - 1)
		}
	}
}
