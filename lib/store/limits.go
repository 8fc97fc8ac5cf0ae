package store

import "fmt"

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
	seen := make(map[Key]int, len(ops))
	for again := range ops {
		if first, ok := seen[ops[again].Key]; ok {
			return first, again, true
		}
		seen[ops[again].Key] = again
	}
	return 0, 0, false
}
