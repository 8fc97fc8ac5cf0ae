package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Use is what one request has consumed, in DynamoDB's units.
type Use struct {
	Operation string // of DynamoDB's API: GetItem, BatchGetItem, Query, PutItem, UpdateItem, DeleteItem, TransactWriteItems
	Read      float64
	Write     float64
}

// metered asks with each request what it consumes, and tells it. A write whose condition failed consumes as well, and its answer
// does not say how much: by AWS's rule it is what the item that stands would cost to be written, or one unit where none does. Of a
// cancelled transaction nothing is told, here as there.
func metered(observe func(Use)) func(*middleware.Stack) error {
	count := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
		out middleware.InitializeOutput, about middleware.Metadata, err error,
	) {
		use := Use{Operation: middleware.GetOperationName(ctx)}
		const total = types.ReturnConsumedCapacityTotal
		switch question := in.Parameters.(type) {
		case *dynamodb.GetItemInput:
			question.ReturnConsumedCapacity = total
		case *dynamodb.BatchGetItemInput:
			question.ReturnConsumedCapacity = total
		case *dynamodb.QueryInput:
			question.ReturnConsumedCapacity = total
		case *dynamodb.PutItemInput:
			question.ReturnConsumedCapacity = total
		case *dynamodb.UpdateItemInput:
			question.ReturnConsumedCapacity = total
		case *dynamodb.DeleteItemInput:
			question.ReturnConsumedCapacity = total
		case *dynamodb.TransactWriteItemsInput:
			question.ReturnConsumedCapacity = total
		}
		out, about, err = next.HandleInitialize(ctx, in)
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			use.Write = writeUnits(failed.Item)
		} else if err == nil {
			use.Read, use.Write = consumed(out.Result)
		}
		if use.Read > 0 || use.Write > 0 {
			observe(use)
		}
		return out, about, err
	}
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ConsumedUnits", count), middleware.After)
	}
}

func consumed(answer any) (read, write float64) {
	units := func(all ...types.ConsumedCapacity) (sum float64) {
		for _, one := range all {
			if one.CapacityUnits != nil {
				sum += *one.CapacityUnits
			}
		}
		return sum
	}
	one := func(c *types.ConsumedCapacity) float64 {
		if c == nil {
			return 0
		}
		return units(*c)
	}
	switch answer := answer.(type) {
	case *dynamodb.GetItemOutput:
		return one(answer.ConsumedCapacity), 0
	case *dynamodb.BatchGetItemOutput:
		return units(answer.ConsumedCapacity...), 0
	case *dynamodb.QueryOutput:
		return one(answer.ConsumedCapacity), 0
	case *dynamodb.PutItemOutput:
		return 0, one(answer.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		return 0, one(answer.ConsumedCapacity)
	case *dynamodb.DeleteItemOutput:
		return 0, one(answer.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		return 0, units(answer.ConsumedCapacity...)
	}
	return 0, 0
}

// writeUnits is what writing an item costs: one unit for each KB begun, of names and values.
func writeUnits(item attributes) float64 {
	size := 0
	for name, value := range item {
		size += len(name)
		switch value := value.(type) {
		case *types.AttributeValueMemberB:
			size += len(value.Value)
		case *types.AttributeValueMemberN:
			size += (len(value.Value)+1)/2 + 1 // two digits a byte, and one more
		}
	}
	return max(1, float64((size+1023)/1024))
}
