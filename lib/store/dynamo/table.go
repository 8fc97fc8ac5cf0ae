package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// creation is how long AWS may take to make a table; it mostly takes ten seconds.
const creation = 2 * time.Minute

// CreateTable makes the table that a configuration names, paid for by request, and waits until it can be used. A table of that
// name that stands already is left as it is.
func CreateTable(ctx context.Context, cfg Config) error {
	s, err := New(cfg)
	if err != nil {
		return err
	}
	defer s.stop()
	_, err = s.db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: s.table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrPartition), AttributeType: types.ScalarAttributeTypeB},
			{AttributeName: aws.String(attrSort), AttributeType: types.ScalarAttributeTypeB},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrPartition), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrSort), KeyType: types.KeyTypeRange},
		},
	})
	var stands *types.ResourceInUseException
	switch {
	case errors.As(err, &stands):
		return nil
	case err != nil:
		return fmt.Errorf("create: %w", s.explain(err))
	}
	wait := dynamodb.NewTableExistsWaiter(s.db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second })
	if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: s.table}, creation); err != nil {
		return fmt.Errorf("create %s: %w", s.place, err)
	}
	_, err = s.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               s.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(attrExpiry), Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("create: let items expire: %w", s.explain(err))
	}
	return nil
}
