package belfry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// sharing makes a gate, and handlers that name it, over a scheduler of either kind.
func sharing(t *testing.T, b *Belfry) {
	ctx := t.Context()
	nothing := func(context.Context, *Job[string]) error { return nil }
	Handle(b, "charge", nothing, Gates("stripe"), GateUnits("gpu", 2))
	if err := b.define(ctx, "charge"); !HasCode(err, CodeInvalid) {
		t.Errorf("a handler that names gates which are not there: %v", err)
	}
	for _, limit := range []int{1, 4, 4} {
		for _, name := range []string{"stripe", "gpu"} {
			if err := b.SetGate(ctx, name, limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.SetGate(ctx, "stripe", 0); !HasCode(err, CodeInvalid) {
		t.Errorf("a limit of 0: %v", err)
	}
	// What else somebody has said of it stays.
	_, only, err := b.engine.gate(ctx, "gpu")
	if err == nil {
		err = b.engine.putGate(ctx, "gpu", gate.Definition{Limit: 4, Order: gate.OrderFIFO, MaxWait: schedule.Duration(time.Hour)}, only)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetGate(ctx, "gpu", 5); err != nil {
		t.Fatal(err)
	}
	if def, _, err := b.engine.gate(ctx, "gpu"); err != nil || def.Limit != 5 || def.Order != gate.OrderFIFO || def.MaxWait.Std() != time.Hour {
		t.Errorf("the gate is %+v, %v", def, err)
	}
	if err := b.SetGate(ctx, "gpu", 5, MaxWait(time.Minute), GateOrder(OrderDeadline)); err != nil {
		t.Fatal(err)
	}
	if def, _, err := b.engine.gate(ctx, "gpu"); err != nil || def.Limit != 5 || def.Order != gate.OrderDeadline || def.MaxWait.Std() != time.Minute {
		t.Errorf("the gate is %+v, %v", def, err)
	}
	for field, wrong := range map[string]GateOption{"max_wait": MaxWait(time.Millisecond), "order": GateOrder("fair")} {
		if err := b.SetGate(ctx, "gpu", 5, wrong); !HasCode(err, CodeInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
	start(t, b)
	def, _, err := b.engine.job(ctx, "charge")
	if err != nil || fmt.Sprint(def.Gates) != "[{stripe 1 } {gpu 2 }]" {
		t.Errorf("the job names the gates %v, %v", def.Gates, err)
	}
}

func TestGatesInThisProcess(t *testing.T) { sharing(t, open(t, "memory:")) }

func TestGatesElsewhere(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	sharing(t, open(t, address, Token(token), RemoteQueue("go")))
}
