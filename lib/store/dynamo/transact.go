package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// transaction is a Write of several ops on its way.
type transaction struct {
	ops []store.Op
	// standing is what a condition was seen to fail on, and for puts under Any what was read before.
	standing []store.Item
	// slots are the ops that DynamoDB is given, by their place there.
	slots []int
}

// transact does several ops at once. A transaction tells no versions, so a put under Any needs one to count on from: what
// stands is read first, and the put is done under the condition that it still does. When only such a condition fails, the
// transaction is tried again with what was handed back.
func (s *Store) transact(ctx context.Context, ops []store.Op) ([]uint64, error) {
	t := &transaction{ops: ops, standing: make([]store.Item, len(ops))}
	if err := s.readUnconditional(ctx, t); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		request := t.request(s.table)
		err := error(nil)
		if len(request) > 0 {
			err = s.writing(ctx, func(ctx context.Context) error {
				_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: request})
				return err
			})
		}
		if err != nil && !isConditionFailed(err) {
			return nil, err
		}
		reasons, _ := cancelled(err)
		if overtaken, wrong := t.learn(reasons); wrong != nil {
			return nil, wrong
		} else if err == nil || !overtaken {
			return t.decide(err == nil)
		}
		if try+1 == tries {
			return nil, fmt.Errorf("%w: overtaken %d times", store.ErrThrottled, tries)
		}
		if err := s.pause(ctx, try); err != nil {
			return nil, fmt.Errorf("%w, and then: %w", store.ErrThrottled, err)
		}
	}
}

// readUnconditional reads what puts under Any will count on from.
func (s *Store) readUnconditional(ctx context.Context, t *transaction) error {
	var keys []store.Key
	var at []int
	for i := range t.ops {
		t.standing[i].Key = t.ops[i].Key
		if t.counts(i) {
			keys, at = append(keys, t.ops[i].Key), append(at, i)
		}
	}
	items, err := s.fetch(ctx, keys, true)
	for n, item := range items {
		t.standing[at[n]] = item
	}
	return err
}

// counts tells whether an op is a put under Any.
func (t *transaction) counts(i int) bool { return t.ops[i].Kind == store.Put && t.ops[i].If.IsAny() }

// request is the transaction as DynamoDB wants it. A check under Any holds nothing, and is left out.
func (t *transaction) request(table *string) []types.TransactWriteItem {
	t.slots = t.slots[:0]
	var request []types.TransactWriteItem
	for i := range t.ops {
		op := &t.ops[i]
		given := op.If
		if t.counts(i) {
			given = store.At(t.standing[i])
		}
		condition, values := conditionOf(given)
		const allOld = types.ReturnValuesOnConditionCheckFailureAllOld
		var item types.TransactWriteItem
		switch {
		case op.Kind == store.Put:
			wanted, _ := given.Wants()
			item.Put = &types.Put{
				TableName: table, Item: itemOf(op, wanted+1), ConditionExpression: condition, ExpressionAttributeValues: values,
				ReturnValuesOnConditionCheckFailure: allOld,
			}
		case op.Kind == store.Delete:
			item.Delete = &types.Delete{
				TableName: table, Key: keyOf(op.Key), ConditionExpression: condition, ExpressionAttributeValues: values,
				ReturnValuesOnConditionCheckFailure: allOld,
			}
		case condition == nil:
			continue
		default:
			item.ConditionCheck = &types.ConditionCheck{
				TableName: table, Key: keyOf(op.Key), ConditionExpression: condition, ExpressionAttributeValues: values,
				ReturnValuesOnConditionCheckFailure: allOld,
			}
		}
		t.slots = append(t.slots, i)
		request = append(request, item)
	}
	return request
}

// learn takes what failed conditions handed back. overtaken means that none but those of puts under Any failed, so that the
// transaction may be tried again.
func (t *transaction) learn(reasons []types.CancellationReason) (overtaken bool, err error) {
	overtaken = true
	for n, i := range t.slots {
		op := &t.ops[i]
		if n < len(reasons) && codeOf(reasons[n]) == conditionFailed {
			if t.standing[i], err = read(op.Key, reasons[n].Item); err != nil {
				return false, err
			}
			overtaken = overtaken && t.counts(i)
		} else if !t.counts(i) {
			t.standing[i].Version, _ = op.If.Wants() // it held
		}
	}
	return overtaken, nil
}

// decide gives the versions, or the conflict.
func (t *transaction) decide(written bool) ([]uint64, error) {
	versions := make([]uint64, len(t.ops))
	apply, conflict := store.Decide(versions, t.ops, t.standing)
	switch {
	case conflict != nil:
		return nil, conflict
	case apply && !written:
		return nil, fmt.Errorf("%s: a condition was refused, and what was handed back fulfils it", t.ops[0].Key)
	default:
		return versions, nil
	}
}
