package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// creation is how long AWS may take to make a table; it mostly takes ten seconds.
const creation = 2 * time.Minute

// CreateTable makes the table that a configuration names, paid for by request, and waits until it can be used. A table of that
// name that stands already is left as it is. Protect is for a table that is not for tests.
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

// Protect makes every second of the last 35 days recoverable (recovery), and lets nobody delete the table before that is undone
// (deletion). What is on already stays on.
func Protect(ctx context.Context, cfg Config, recovery, deletion bool) error {
	s, err := New(cfg)
	if err != nil {
		return err
	}
	defer s.stop()
	if deletion {
		_, err := s.db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: s.table, DeletionProtectionEnabled: aws.Bool(true)})
		if err != nil {
			return fmt.Errorf("protect from deletion: %w", s.explain(err))
		}
	}
	for try := 0; recovery; try++ {
		_, err := s.db.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{TableName: s.table,
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)}})
		var early *types.ContinuousBackupsUnavailableException
		switch {
		case err == nil:
			return nil
		case unheardOf(err):
			return fmt.Errorf("%s has no point-in-time recovery: an emulator answers there, and the table can do without it", s.place)
		case !errors.As(err, &early) || try == recoveryTries: // of a table that was made a moment ago
			return fmt.Errorf("point-in-time recovery: %w", s.explain(err))
		}
		wait := time.NewTimer(time.Second)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
	return nil
}

const recoveryTries = 60

// Setting is whether something of a table is on. An emulator may not tell.
type Setting string

// The settings.
const (
	On     Setting = "on"
	Off    Setting = "off"
	Untold Setting = "not told"
)

// Table is how a table is set up.
type Table struct {
	Place      string   // for people: which table where
	Status     string   // as AWS has it; ACTIVE is the one that works
	Keys       string   // for people: what they are
	KeysRight  bool     // they are those of Belfry's tables
	Expiry     Setting  // items that have expired are deleted
	Recovery   Setting  // any second of the last weeks can be had back
	Protection Setting  // from deletion
	OnDemand   bool     // paid for by request, without a limit that was set beforehand
	Regions    []string // others that have a replica
	Items      int64    // as of some hours ago
}

// ErrNoTable says that there is no table of the name in the region.
var ErrNoTable = errors.New("there is no such table")

// Describe tells how a table is set up; an error that wraps ErrNoTable that it is not there.
func Describe(ctx context.Context, cfg Config) (Table, error) {
	s, err := New(cfg)
	if err != nil {
		return Table{}, err
	}
	defer s.stop()
	out, err := s.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: s.table})
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		return Table{}, fmt.Errorf("%w (%w)", s.explain(err), ErrNoTable)
	case err != nil:
		return Table{}, s.explain(err)
	}
	d := out.Table
	t := Table{Place: s.place, Status: string(d.TableStatus), Items: aws.ToInt64(d.ItemCount), Expiry: Untold, Recovery: Untold, Protection: Off}
	t.OnDemand = d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode == types.BillingModePayPerRequest
	if aws.ToBool(d.DeletionProtectionEnabled) {
		t.Protection = On
	}
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range d.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	for _, k := range d.KeySchema {
		t.Keys += fmt.Sprintf("%s (%s, %s) ", aws.ToString(k.AttributeName), k.KeyType, kinds[aws.ToString(k.AttributeName)])
	}
	t.Keys = strings.TrimSpace(t.Keys)
	t.KeysRight = t.Keys == fmt.Sprintf("%s (HASH, B) %s (RANGE, B)", attrPartition, attrSort)
	for _, r := range d.Replicas {
		t.Regions = append(t.Regions, aws.ToString(r.RegionName))
	}
	return t, s.describeUpkeep(ctx, &t)
}

// describeUpkeep tells of what has requests of its own. An emulator that does not know one of them leaves the setting untold.
func (s *Store) describeUpkeep(ctx context.Context, t *Table) error {
	ttl, err := s.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: s.table})
	switch {
	case err == nil && ttl.TimeToLiveDescription != nil:
		t.Expiry = Off
		if d := ttl.TimeToLiveDescription; aws.ToString(d.AttributeName) == attrExpiry &&
			(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
			t.Expiry = On
		}
	case err != nil && !unheardOf(err):
		return fmt.Errorf("ask how items expire: %w", s.explain(err))
	}
	backups, err := s.db.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: s.table})
	switch {
	case err == nil && backups.ContinuousBackupsDescription != nil:
		t.Recovery = Off
		if p := backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription; p != nil && p.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
			t.Recovery = On
		}
	case err != nil && !unheardOf(err):
		return fmt.Errorf("ask for point-in-time recovery: %w", s.explain(err))
	}
	return nil
}

func unheardOf(err error) bool {
	var said smithy.APIError
	return errors.As(err, &said) && said.ErrorCode() == "UnknownOperationException"
}
