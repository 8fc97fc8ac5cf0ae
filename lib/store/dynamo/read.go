package dynamo

import (
	"context"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// probe reads a key that nobody writes, for the errors and the time that the answer tells.
func (s *Store) probe(ctx context.Context) error {
	return s.reading(ctx, func(ctx context.Context) error {
		_, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: s.table, Key: keyOf(store.Key{Partition: "probe", Sort: "probe"}),
		})
		return err
	})
}

// Get reads items as the port says.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := s.get(ctx, keys, true)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return items, nil
}

// Peek reads items at half the price, as they stood perhaps a second ago.
func (s *Store) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := s.get(ctx, keys, false)
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	return items, nil
}

func (s *Store) get(ctx context.Context, keys []store.Key, strong bool) ([]store.Item, error) {
	if err := store.CheckKeys(keys); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	return s.fetch(ctx, keys, strong)
}

// fetch reads keys that are within the limits.
func (s *Store) fetch(ctx context.Context, keys []store.Key, strong bool) ([]store.Item, error) {
	found := make(map[store.Key]store.Item, len(keys))
	var batch []attributes // BatchGetItem refuses a key that comes twice
	for _, k := range keys {
		if _, again := found[k]; !again {
			found[k] = store.Item{Key: k}
			batch = append(batch, keyOf(k))
		}
	}
	var err error
	switch len(batch) {
	case 0:
	case 1:
		err = s.fetchOne(ctx, keys[0], strong, found)
	default:
		err = s.fetchBatch(ctx, batch, strong, found)
	}
	if err != nil {
		return nil, err
	}
	items := make([]store.Item, len(keys))
	for i, k := range keys {
		items[i] = found[k]
	}
	return items, nil
}

func (s *Store) fetchOne(ctx context.Context, k store.Key, strong bool, into map[store.Key]store.Item) error {
	var answer *dynamodb.GetItemOutput
	err := s.reading(ctx, func(ctx context.Context) (err error) {
		answer, err = s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: s.table, Key: keyOf(k), ConsistentRead: &strong})
		return err
	})
	if err != nil {
		return err
	}
	into[k], err = read(k, answer.Item)
	return err
}

// fetchBatch asks until every key was answered: what DynamoDB leaves out, for load or since 16 MB are full, it names. A round
// that brings something is progress, so only rounds without any count as tries.
func (s *Store) fetchBatch(ctx context.Context, batch []attributes, strong bool, into map[store.Key]store.Item) error {
	for try := 0; len(batch) > 0; {
		var answer *dynamodb.BatchGetItemOutput
		err := s.reading(ctx, func(ctx context.Context) (err error) {
			answer, err = s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{*s.table: {Keys: batch, ConsistentRead: &strong}},
			})
			return err
		})
		if err != nil {
			return err
		}
		for _, from := range answer.Responses[*s.table] {
			item, err := readKeyed(from)
			if err != nil {
				return err
			}
			into[item.Key] = item
		}
		left := answer.UnprocessedKeys[*s.table].Keys
		if len(left) == 0 {
			return nil
		}
		if len(left) < len(batch) {
			try = 0
		} else if try++; try == tries {
			return fmt.Errorf("%w: %s left out %d keys again and again", store.ErrThrottled, s.place, len(left))
		}
		batch = left
		if err := s.pause(ctx, try); err != nil {
			return err
		}
	}
	return nil
}

// Query reads a page as the port says.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	from, to, err := r.Bounds()
	if err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	if err := s.begin(ctx); err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	defer s.calls.Done()
	if to != "" && from >= to {
		return store.Page{}, nil // which DynamoDB would call an error
	}
	strong, forward := true, !r.Backward
	question := &dynamodb.QueryInput{
		TableName: s.table, ConsistentRead: &strong, ScanIndexForward: &forward, ExclusiveStartKey: startOf(r, from, to),
	}
	question.KeyConditionExpression, question.ExpressionAttributeValues = within(r)
	if r.Limit > 0 {
		limit := int32(min(r.Limit, math.MaxInt32))
		question.Limit = &limit
	}
	var answer *dynamodb.QueryOutput
	err = s.reading(ctx, func(ctx context.Context) (err error) {
		answer, err = s.db.Query(ctx, question)
		return err
	})
	if err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	page, err := pageOf(r, answer)
	if err != nil {
		return store.Page{}, fmt.Errorf("query: %w", err)
	}
	return page, nil
}

// within is the whole range as a condition on keys. DynamoDB has no half-open interval with both ends, so an item at To is read,
// and pageOf drops it; it is at most one, at the end of the range.
func within(r store.Range) (*string, attributes) {
	condition, values := "p = :p", attributes{":p": binary(r.Partition)}
	switch {
	case r.From != "" && r.To != "":
		condition += " AND s BETWEEN :from AND :to"
		values[":from"], values[":to"] = binary(r.From), binary(r.To)
	case r.From != "":
		condition += " AND s >= :from"
		values[":from"] = binary(r.From)
	case r.To != "":
		condition += " AND s < :to"
		values[":to"] = binary(r.To)
	}
	return &condition, values
}

// startOf is the key after which reading begins, nil for the end of the range. The page's bounds are not used as conditions:
// the first key after one of 1,024 bytes has 1,025, which is no key. A range with both ends that is read backward begins below To.
func startOf(r store.Range, from, to string) attributes {
	switch {
	case r.Backward && (r.Cursor != "" || r.From != "" && r.To != ""):
		return keyOf(store.Key{Partition: r.Partition, Sort: to})
	case !r.Backward && r.Cursor != "":
		return keyOf(store.Key{Partition: r.Partition, Sort: from[:len(from)-1]}) // Bounds put a zero byte behind the last key
	default:
		return nil
	}
}

func pageOf(r store.Range, answer *dynamodb.QueryOutput) (store.Page, error) {
	pages := store.Pages{Range: r}
	for _, from := range answer.Items {
		item, err := readKeyed(from)
		if err != nil {
			return store.Page{}, err
		}
		if r.To != "" && item.Sort >= r.To {
			return pages.Page(), nil // only forward, and nothing comes behind it
		}
		if !pages.Room(item.Size()) {
			return pages.Page(), nil
		}
		pages.Add(item)
	}
	page := pages.Page()
	if last := text(answer.LastEvaluatedKey[attrSort]); last != "" && (r.To == "" || last < r.To) {
		page.Cursor = r.After(last)
	}
	return page, nil
}
