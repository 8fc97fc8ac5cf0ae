package memory_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Config{}) })
	storetest.RunPortable(t, func(*testing.T) store.Engine { return memory.New(memory.Config{}) })
}

// TestExpiry holds that what has expired goes as other writes come, and nothing else does.
func TestExpiry(t *testing.T) {
	now := time.Unix(2_000_000_000, 0)
	s := memory.New(memory.Config{Now: func() time.Time { return now }})
	put := func(sort string, expires time.Time) {
		t.Helper()
		op := store.Op{Kind: store.Put, Key: store.Key{Partition: "p", Sort: sort}, Expires: expires}
		if _, err := s.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		put(fmt.Sprint("a", i), now.Add(time.Minute))
		put(fmt.Sprint("b", i), now.Add(time.Hour))
		put(fmt.Sprint("c", i), time.Time{})
	}
	for i := range 50 { // written again, to live longer, and for ever
		put(fmt.Sprint("a", i), []time.Time{now.Add(time.Hour), {}}[i%2])
	}
	now = now.Add(time.Minute)
	for i := range 60 {
		put(fmt.Sprint("d", i), time.Time{})
	}
	page, err := s.Query(t.Context(), store.Range{Partition: "p"})
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, i := range page.Items {
		left[i.Sort[:1]]++
	}
	if want := map[string]int{"a": 50, "b": 100, "c": 100, "d": 60}; !maps.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}
