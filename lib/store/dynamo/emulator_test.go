//go:build emulators

// The engine against an emulator of DynamoDB: make test-emulators.

package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

var tables atomic.Int64

// emulated is a new table in the emulator.
func emulated(t *testing.T, client aws.HTTPClient) dynamo.Config {
	t.Helper()
	return emulatedBy(t, "BELFRY_TEST_DYNAMODB", client)
}

// emulatedBy is a new table in the emulator whose endpoint a variable names.
func emulatedBy(t *testing.T, variable string, client aws.HTTPClient) dynamo.Config {
	t.Helper()
	endpoint := os.Getenv(variable)
	if endpoint == "" {
		t.Fatalf("%s is not set: want the endpoint of an emulator; run make test-emulators", variable)
	}
	cfg := dynamo.Config{
		AWS: aws.Config{
			Region: "eu-central-1", HTTPClient: client,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			}),
		},
		Table: fmt.Sprint("belfry-", tables.Add(1)), Endpoint: endpoint, Random: rand.Uint64,
	}
	if err := dynamo.CreateTable(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func open(t *testing.T, cfg dynamo.Config) *dynamo.Store {
	t.Helper()
	s, err := dynamo.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, emulated(t, nil)) })
}

// TestOpenFindsItsTable holds that a table that is missing, or of another's making, is told when the store is opened and not by the
// first job; and that making a table that stands changes nothing.
func TestOpenFindsItsTable(t *testing.T) {
	cfg := emulated(t, nil)
	s := open(t, cfg)
	if _, err := s.Write(t.Context(), putAt(store.Absent)); err != nil {
		t.Fatal(err)
	}
	if err := dynamo.CreateTable(t.Context(), cfg); err != nil {
		t.Errorf("making a table that stands: %v", err)
	}
	if items, err := open(t, cfg).Get(t.Context(), at); err != nil || items[0].Version != 1 {
		t.Errorf("a store opened again holds %v, %v", items, err)
	}
	foreign := dynamodb.NewFromConfig(cfg.AWS, func(o *dynamodb.Options) { o.BaseEndpoint = &cfg.Endpoint })
	_, err := foreign.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("foreign"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]string{
		"missing": `there is no table "missing" in eu-central-1`,
		"foreign": `Belfry's tables have the keys p and s, both binary`,
	} {
		cfg.Table = table
		if _, err := dynamo.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opening the %s table gave %v, want %q", table, err, want)
		}
	}
}

// TestPagesEndAtTheLongestKeys reads on behind keys after which no longer one can be named, in both directions.
func TestPagesEndAtTheLongestKeys(t *testing.T) {
	s := open(t, emulated(t, nil))
	long := strings.Repeat("\xff", store.MaxSort-1)
	want := []string{long + "a", long + "b", long + "c"}
	for _, sort := range want {
		if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: store.Key{Partition: "p", Sort: sort}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []store.Range{{}, {Backward: true}, {From: want[0]}, {From: want[0], To: long + "d"}, {From: want[0], To: long + "d", Backward: true}} {
		r.Partition, r.Limit = "p", 1
		var got []string
		for range 10 {
			page, err := s.Query(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range page.Items {
				got = append(got, item.Sort)
			}
			if r.Cursor = page.Cursor; r.Cursor == "" {
				break
			}
		}
		if r.Backward {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %d bytes, to %d, backward %v: read %d items of 3", len(r.From), len(r.To), r.Backward, len(got))
		}
	}
}
