package dynamo

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// attributes of an item of the table.
const (
	attrPartition = "p"
	attrSort      = "s"
	attrVersion   = "n"
	attrValue     = "v"
	attrAttempt   = "a"
	attrExpiry    = "ttl"
)

type attributes = map[string]types.AttributeValue

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

func binary(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }

func keyOf(k store.Key) attributes {
	return attributes{attrPartition: binary(k.Partition), attrSort: binary(k.Sort)}
}

// value is never nil: null is no binary.
func value(op *store.Op) types.AttributeValue {
	if op.Value == nil {
		return &types.AttributeValueMemberB{Value: []byte{}}
	}
	return &types.AttributeValueMemberB{Value: op.Value}
}

// itemOf is what a put leaves behind.
func itemOf(op *store.Op, version uint64) attributes {
	item := keyOf(op.Key)
	item[attrVersion] = number(version)
	item[attrValue] = value(op)
	if op.Attempt != 0 {
		item[attrAttempt] = number(op.Attempt)
	}
	if seconds := store.ExpirySeconds(op.Expires); seconds != 0 {
		item[attrExpiry] = number(uint64(seconds))
	}
	return item
}

// read is the item under a key, of version 0 where there is none. An item without a version was not written by this engine.
func read(k store.Key, from attributes) (store.Item, error) {
	item := store.Item{Key: k}
	if len(from) == 0 {
		return item, nil
	}
	version, err := numberIn(from, attrVersion)
	if err != nil || version == 0 {
		return item, fmt.Errorf("item %q: its version %s is not a number of at least 1: the table holds what Belfry did not write", k, attrVersion)
	}
	attempt, err := numberIn(from, attrAttempt)
	if err != nil {
		return item, fmt.Errorf("item %q: attempt: %w", k, err)
	}
	expiry, err := numberIn(from, attrExpiry)
	if err != nil {
		return item, fmt.Errorf("item %q: expiry: %w", k, err)
	}
	item.Version, item.Attempt, item.Expires = version, attempt, store.ExpiryTime(int64(expiry))
	if v, ok := from[attrValue].(*types.AttributeValueMemberB); ok {
		item.Value = v.Value
	}
	return item, nil
}

// readKeyed is read for an item that brings its key along.
func readKeyed(from attributes) (store.Item, error) {
	return read(store.Key{Partition: text(from[attrPartition]), Sort: text(from[attrSort])}, from)
}

func text(v types.AttributeValue) string {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return string(b.Value)
	}
	return ""
}

// numberIn is 0 where the attribute is not there.
func numberIn(from attributes, name string) (uint64, error) {
	v, ok := from[name]
	if !ok {
		return 0, nil
	}
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("%s is no number", name)
	}
	return strconv.ParseUint(n.Value, 10, 64)
}
