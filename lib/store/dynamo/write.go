package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Write does all or nothing, as the port says.
func (s *Store) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if err := store.CheckWrite(ops); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	defer s.calls.Done()
	var versions []uint64
	var err error
	switch len(ops) {
	case 0:
	case 1:
		versions = make([]uint64, 1)
		versions[0], err = s.one(ctx, &ops[0])
	default:
		versions, err = s.transact(ctx, ops)
	}
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return versions, nil
}

// WriteEach does each op on its own, as the port says. BatchWriteItem takes no conditions and tells no versions, and a unit costs
// the same with it, so each op is a request.
func (s *Store) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	if err := store.CheckEach(ops); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	if err := s.begin(ctx); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	defer s.calls.Done()
	verdicts := make([]store.Verdict, len(ops))
	var group errgroup.Group
	group.SetLimit(Parallel)
	for i := range ops {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			version, err := s.one(ctx, &ops[i])
			if c := store.AsConflict(err); c != nil {
				c.Op = i
			}
			verdicts[i] = store.Verdict{Version: version, Err: err}
			if isVerdict(err) {
				return nil
			}
			return err // of the whole table or call, not of this op
		})
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	return verdicts, nil
}

func isVerdict(err error) bool {
	return err == nil || store.AsConflict(err) != nil || errors.Is(err, store.ErrThrottled) || errors.Is(err, store.ErrUnknown)
}

// one does a single op, for half of what a transaction of it would cost. A nil error means that it is durable, in
// three places by AWS's word.
func (s *Store) one(ctx context.Context, op *store.Op) (uint64, error) {
	version, err := s.send(ctx, op)
	if err == nil {
		return version, nil
	}
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return 0, err
	}
	standing, err := read(op.Key, failed.Item)
	if err != nil {
		return 0, err
	}
	return decided(op, standing)
}

// decided is what becomes of an op whose condition does not hold.
func decided(op *store.Op, standing store.Item) (uint64, error) {
	var versions [1]uint64
	apply, conflict := store.Decide(versions[:], []store.Op{*op}, []store.Item{standing})
	switch {
	case conflict != nil:
		return 0, conflict
	case apply:
		return 0, fmt.Errorf("%s: the condition %s was refused, and what was handed back fulfils it", op.Key, op.If)
	default:
		return versions[0], nil
	}
}

// send does an op as the one request that fits, and gives the version of a put.
func (s *Store) send(ctx context.Context, op *store.Op) (uint64, error) {
	switch {
	case op.Kind == store.Check:
		return 0, s.check(ctx, op)
	case op.Kind == store.Delete:
		condition, values := conditionOf(op.If)
		return 0, s.writing(ctx, func(ctx context.Context) error {
			_, err := s.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: s.table, Key: keyOf(op.Key), ConditionExpression: condition, ExpressionAttributeValues: values,
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			return err
		})
	case op.If.IsAny():
		return s.overwrite(ctx, op)
	default:
		condition, values := conditionOf(op.If)
		standing, _ := op.If.Wants()
		return standing + 1, s.writing(ctx, func(ctx context.Context) error {
			_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: s.table, Item: itemOf(op, standing+1), ConditionExpression: condition, ExpressionAttributeValues: values,
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			return err
		})
	}
}

// overwrite puts whatever stands, and counts its version on in the same step.
func (s *Store) overwrite(ctx context.Context, op *store.Op) (uint64, error) {
	set, remove := "SET n = if_not_exists(n, :none) + :one, v = :v", ""
	item := itemOf(op, 1)
	values := attributes{":none": number(0), ":one": number(1), ":v": item[attrValue]}
	names := map[string]string{"#ttl": attrExpiry} // a reserved word
	for _, optional := range []struct{ name, attribute string }{{attrAttempt, attrAttempt}, {"#ttl", attrExpiry}} {
		if v, ok := item[optional.attribute]; ok {
			set += ", " + optional.name + " = :" + optional.attribute
			values[":"+optional.attribute] = v
		} else if remove == "" {
			remove = " REMOVE " + optional.name
		} else {
			remove += ", " + optional.name
		}
	}
	expression := set + remove
	var answer *dynamodb.UpdateItemOutput
	err := s.writing(ctx, func(ctx context.Context) (err error) {
		answer, err = s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: s.table, Key: keyOf(op.Key), UpdateExpression: &expression,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValues: types.ReturnValueUpdatedNew,
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	version, err := numberIn(answer.Attributes, attrVersion)
	if err != nil || version == 0 {
		return 0, fmt.Errorf("%w: %s: the answer tells no version", store.ErrUnknown, op.Key)
	}
	return version, nil
}

// check holds a condition by reading, at half of what a write costs: a strongly consistent read is as serial as one.
func (s *Store) check(ctx context.Context, op *store.Op) error {
	if op.If.IsAny() {
		return nil
	}
	items, err := s.fetch(ctx, []store.Key{op.Key}, true)
	if err != nil {
		return err
	}
	if op.If.Holds(items[0].Version) {
		return nil
	}
	_, err = decided(op, items[0])
	return err
}

// conditionOf is nil for Any.
func conditionOf(c store.Cond) (*string, attributes) {
	absent, version := "attribute_not_exists(p)", "n = :n"
	if wants, ok := c.Wants(); ok {
		return &version, attributes{":n": number(wants)}
	}
	if c.IsAbsent() {
		return &absent, nil
	}
	return nil, nil
}
