package changes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

func TestWhatAKeyIsOf(t *testing.T) {
	fire, asked := run.FireID("re.port-1", 1763712000000), run.RequestID("a", 1763712000000, 77)
	for _, c := range []struct {
		key  store.Key
		want []string
	}{
		{job.Key("acme", "a"), []string{"jobs", "job:a"}},
		{fire.Key("acme"), []string{"runs", "queues", "job:re.port-1", "run:" + fire.String()}},
		{asked.Key("acme"), []string{"runs", "queues", "job:a", "run:" + asked.String()}},
		{asked.At("parts/load").Key("acme"), []string{"run:" + asked.String()}},
		{run.Run{Tenant: "acme", ID: fire}.DeadKey(), []string{"dead-letters"}},
		{job.PastKey("acme", "a", 1), nil},
		{store.Key{Partition: "swept#01", Sort: "0000000001"}, nil},
		{store.Key{Partition: "run#acme", Sort: "x"}, nil},
		{store.Key{Partition: "step#acme#nothing", Sort: "x"}, nil},
		{store.Key{Partition: "token#0f3a5b7c9d1e2f40", Sort: "-"}, nil},
	} {
		tenant, got := changes.Of(c.key)
		if !slices.Equal(got, c.want) || len(got) > 0 && tenant != "acme" {
			t.Errorf("%s: %s %q, want %q of acme", c.key, tenant, got, c.want)
		}
	}
}

// Only what was written is told, to its own tenant, each name once.
func TestTheStoreTellsWhatWasWritten(t *testing.T) {
	hub := new(changes.Hub)
	s := changes.Store(memory.New(memory.Config{Now: time.Now}), hub)
	put := func(key store.Key, cond store.Cond) store.Op {
		return store.Op{Kind: store.Put, Key: key, If: cond, Value: []byte("v")}
	}
	l, err := hub.Listen("acme")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, b := job.Key("acme", "a"), job.Key("acme", "b")
	if _, err := s.Write(t.Context(), put(a, store.Absent), put(job.Key("other", "x"), store.Absent), store.Op{Kind: store.Check, Key: b, If: store.Absent}); err != nil {
		t.Fatal(err)
	}
	<-l.Ready()
	if got := l.Take(); !slices.Equal(got, []string{"job:a", "jobs"}) {
		t.Errorf("told %q", got)
	}
	if _, err := s.Write(t.Context(), put(a, store.Absent), put(b, store.Absent)); store.AsConflict(err) == nil {
		t.Fatal(err)
	}
	if got := l.Take(); len(got) != 0 {
		t.Errorf("nothing was written, and it is told %q", got)
	}
	if _, err := s.WriteEach(t.Context(), put(a, store.Absent), put(b, store.Absent)); err != nil {
		t.Fatal(err)
	}
	<-l.Ready()
	if got := l.Take(); !slices.Equal(got, []string{"job:b", "jobs"}) {
		t.Errorf("one of two was written: told %q", got)
	}
}

func TestListenersAreBounded(t *testing.T) {
	hub := new(changes.Hub)
	var all []*changes.Listener
	for {
		l, err := hub.Listen("acme")
		if err != nil {
			if !errors.Is(err, changes.ErrFull) || len(all) != changes.MaxTenantListeners {
				t.Fatalf("after %d: %v", len(all), err)
			}
			break
		}
		all = append(all, l)
	}
	all[0].Close()
	all[0].Close() // again, which changes nothing
	if _, err := hub.Listen("acme"); err != nil {
		t.Errorf("one has gone: %v", err)
	}
	if _, err := hub.Listen("acme"); !errors.Is(err, changes.ErrFull) {
		t.Errorf("closed twice it makes room for two: %v", err)
	}
	if n := hub.Listeners(); n != changes.MaxTenantListeners {
		t.Errorf("%d listen", n)
	}
}

// While nobody listens a write costs nothing that could be measured: it makes nothing.
func TestNobodyListensAndNothingIsMade(t *testing.T) {
	hub := new(changes.Hub)
	s := changes.Store(still{}, hub)
	ops := []store.Op{{Kind: store.Put, Key: run.FireID("a", 1).Key("acme")}}
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Write(t.Context(), ops...) }); n != 0 {
		t.Errorf("%g allocations a write", n)
	}
}

// still is a store that does nothing.
type still struct{ store.Store }

func (still) Write(context.Context, ...store.Op) ([]uint64, error) { return nil, nil }
