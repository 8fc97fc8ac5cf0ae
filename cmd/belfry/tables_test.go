package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

func TestWhatIsWrongWithATable(t *testing.T) {
	right := dynamo.Table{Place: `table "belfry-table" in eu-west-1`, Status: "ACTIVE", Keys: "p (HASH, B) s (RANGE, B)", KeysRight: true, Expiry: dynamo.On,
		Recovery: dynamo.On, Protection: dynamo.On, OnDemand: true}
	for _, f := range tableFindings(right) {
		if f.Status != findOK {
			t.Errorf("of a table that is as it should be: %+v", f)
		}
	}
	for name, row := range map[string]struct {
		change        func(*dynamo.Table)
		check, status string
		found         string
	}{
		"keys":        {func(t *dynamo.Table) { t.Keys, t.KeysRight = "id (HASH, S)", false }, "keys", findProblem, "they are id (HASH, S)"},
		"expiry":      {func(t *dynamo.Table) { t.Expiry = dynamo.Off }, "expiry", findProblem, "nothing that has expired is deleted"},
		"recovery":    {func(t *dynamo.Table) { t.Recovery = dynamo.Off }, "recovery", findAttention, "no point-in-time recovery"},
		"protection":  {func(t *dynamo.Table) { t.Protection = dynamo.Off }, "deletion", findAttention, "may be deleted"},
		"provisioned": {func(t *dynamo.Table) { t.OnDemand = false }, "capacity", findAttention, "provisioned"},
		"replicas":    {func(t *dynamo.Table) { t.Regions = []string{"us-east-1"} }, "regions", findAttention, "us-east-1"},
		"not ready":   {func(t *dynamo.Table) { t.Status = "CREATING" }, "table", findAttention, "is creating"},
		"not told":    {func(t *dynamo.Table) { t.Expiry, t.Recovery = dynamo.Untold, dynamo.Untold }, "recovery", findOK, "not told"},
	} {
		table := right
		row.change(&table)
		for _, f := range tableFindings(table) {
			switch {
			case f.Check == row.check && (f.Status != row.status || !strings.Contains(f.Found, row.found) || f.Status != findOK && (f.Why == "" || f.Help == "")):
				t.Errorf("%s: %+v", name, f)
			case f.Check != row.check && f.Status != findOK:
				t.Errorf("%s: also %+v", name, f)
			}
		}
	}
}

func TestWhatIsWrongWithAQueue(t *testing.T) {
	right := sqs.Setup{Name: "belfry-default-high", Keeps: 24 * time.Hour, Encrypted: true, Dead: "arn:aws:sqs:eu-west-1:123456789012:belfry-dead", Receives: 10}
	for name, row := range map[string]struct {
		change        func(*sqs.Setup)
		status, found string
	}{
		"as it should be": {func(*sqs.Setup) {}, findOK, "kept for 24h0m0s, given up after 10 times"},
		"missing":         {func(s *sqs.Setup) { *s = sqs.Setup{Name: s.Name, Err: fmt.Errorf("sqs: (%w)", sqs.ErrMissing)} }, findProblem, "not there"},
		"no rights":       {func(s *sqs.Setup) { *s = sqs.Setup{Name: s.Name, Err: errors.New("sqs: no right to GetQueueUrl")} }, findProblem, "no right to GetQueueUrl"},
		"a delay":         {func(s *sqs.Setup) { s.Delays = time.Minute }, findAttention, "every message is held back for 1m0s"},
		"forgetful":       {func(s *sqs.Setup) { s.Keeps = time.Hour }, findAttention, "a message is kept for 1h0m0s only"},
		"no dead letters": {func(s *sqs.Setup) { s.Dead, s.Receives = "", 0 }, findAttention, "handed out for ever"},
		"few receives":    {func(s *sqs.Setup) { s.Receives = 2 }, findAttention, "handed out 2 times"},
		"plain":           {func(s *sqs.Setup) { s.Encrypted = false }, findAttention, "not encrypted"},
	} {
		setup := right
		row.change(&setup)
		f := setupFinding(setup)
		if f.Check != right.Name || f.Status != row.status || !strings.Contains(f.Found, row.found) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	same := finding{Check: "a", Status: findProblem, Found: "not there", Why: "because", Help: "make it"}
	other := same
	other.Check = "b"
	got := together([]finding{fine("x", "there"), same, fine("y", "there"), other})
	if len(got) != 3 || got[1].Check != "2 queues" || got[1].Found != "not there: a, b" || got[1].Help != "make it" || got[0].Check != "x" || got[2].Check != "y" {
		t.Errorf("together they say %+v", got)
	}
}
