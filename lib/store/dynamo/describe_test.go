//go:build emulators

package dynamo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// TestATableIsDescribed holds that what CreateTable makes is what a table should be, and that another's table is told from it.
func TestATableIsDescribed(t *testing.T) {
	cfg := emulated(t, nil)
	table, err := dynamo.Describe(t.Context(), cfg)
	if err != nil || !table.KeysRight || table.Status != "ACTIVE" || table.Expiry != dynamo.On || !table.OnDemand || table.Protection != dynamo.Off || len(table.Regions) != 0 {
		t.Errorf("%+v, %v", table, err)
	}
	if err := dynamo.Protect(t.Context(), cfg, false, true); err != nil {
		t.Fatal(err)
	}
	if table, err = dynamo.Describe(t.Context(), cfg); err != nil || table.Protection != dynamo.On {
		t.Errorf("after it was protected: %+v, %v", table, err)
	}
	foreign := dynamodb.NewFromConfig(cfg.AWS, func(o *dynamodb.Options) { o.BaseEndpoint = &cfg.Endpoint })
	if _, err := foreign.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:             aws.String("foreign-" + cfg.Table),
		ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)},
		AttributeDefinitions:  []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:             []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	missing := cfg
	cfg.Table, missing.Table = "foreign-"+cfg.Table, "missing"
	if table, err = dynamo.Describe(t.Context(), cfg); err != nil || table.KeysRight || table.Keys != "id (HASH, S)" || table.Expiry != dynamo.Off || table.OnDemand {
		t.Errorf("another's: %+v, %v", table, err)
	}
	if _, err := dynamo.Describe(t.Context(), missing); !errors.Is(err, dynamo.ErrNoTable) || !strings.Contains(err.Error(), "or name another table or region") {
		t.Errorf("a missing table: %v", err)
	}
}
