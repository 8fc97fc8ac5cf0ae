//go:build emulators

package cost

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const emulated = true

// TestTheMeterCountsAsDynamoDB has the domain work over an emulator of DynamoDB, and holds what the meter has counted to what the
// answers tell. Of a transaction the emulator tells half of what AWS charges, and nothing of a query, or of a key in a batch, that finds
// nothing.
func TestTheMeterCountsAsDynamoDB(t *testing.T) {
	endpoint := os.Getenv("BELFRY_TEST_DYNAMODB")
	if endpoint == "" {
		t.Fatal("BELFRY_TEST_DYNAMODB is not set: want the endpoint of an emulator; run make deep-emulators")
	}
	var mu sync.Mutex
	var reads, writes, transacted float64
	cfg := dynamo.Config{
		AWS: aws.Config{Region: "eu-central-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		})},
		Table: "belfry-cost", Endpoint: endpoint, Random: rand.Uint64,
	}
	if err := dynamo.CreateTable(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	open := func(observe func(dynamo.Use)) *dynamo.Store {
		cfg := cfg
		cfg.Observe = observe
		s, err := dynamo.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	over := open(func(u dynamo.Use) {
		mu.Lock()
		defer mu.Unlock()
		reads += u.Read
		if u.Operation == "TransactWriteItems" {
			transacted += u.Write
		} else {
			writes += u.Write
		}
	})
	r := newRig(t, over, full, func(_ context.Context, call target.Call) (target.Result, error) {
		if call.Job == "failing" {
			return target.Result{}, errFails
		}
		return target.Result{Body: make([]byte, 900)}, nil
	})
	r.meter.look = open(nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	reset := func() {
		r.meter.used = units{Requests: map[string]int{}}
		mu.Lock()
		defer mu.Unlock()
		reads, writes, transacted = 0, 0, 0
	}
	check := func(what string) {
		t.Helper()
		used := r.meter.read()
		mu.Lock()
		defer mu.Unlock()
		told := writes + 2*transacted
		t.Logf("%-20s %6.1f read units (%.1f for nothing) and %5.1f write units by the rules, %6.1f and %5.1f by the answers, %v", what,
			used.Reads, used.Nothing, used.Writes, reads, told, used.Requests)
		if used.Writes != told || used.Writes == 0 {
			t.Errorf("%s: %v write units by the rules, %v by the answers", what, used.Writes, told)
		}
		if off := reads + used.Nothing - used.Reads; off < 0 || off > 2 { // the adapter may ask the time, for half a unit
			t.Errorf("%s: %v read units by the rules, %v by the answers", what, used.Reads, reads)
		}
	}
	reset()
	for name, attempts := range map[string]int{"working": 3, "failing": 1} {
		def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Retry: job.Retry{MaxAttempts: attempts}}
		_, _, err := r.Control.Put(r.ctx, "default", name, def, control.Match{})
		must(err)
	}
	check("two jobs put")
	reset()
	var ids []run.ID
	for i := range 30 {
		name := map[bool]string{true: "failing", false: "working"}[i%3 == 0]
		asked, _, err := r.Control.Trigger(r.ctx, "default", name, control.Request{Key: fmt.Sprint(i), Payload: fmt.Appendf(nil, `"%0*d"`, 60*i, i)})
		must(err)
		ids = append(ids, asked.ID)
	}
	check("30 asked for")
	reset()
	must(r.tick())
	check("a tick")
	reset()
	must(r.deliver())
	check("30 worked on")
	reset()
	for _, id := range ids {
		_, err := r.Control.Run(r.ctx, "default", id)
		must(err)
	}
	if _, _, err := r.Control.Runs(r.ctx, "default", control.RunFilter{}, "", 50); err != nil {
		t.Fatal(err)
	}
	if letters, _, err := r.Control.DeadLetters(r.ctx, "default", control.DeadFilter{}, "", 50); err != nil || len(letters) != 10 {
		t.Errorf("%d dead letters (%v), want 10", len(letters), err)
	}
	_, err := r.Control.Pause(r.ctx, "default", "working", "enough", control.Match{})
	must(err)
	check("looked at, paused")
}
