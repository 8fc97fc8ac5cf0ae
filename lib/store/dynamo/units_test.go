//go:build emulators

package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// meter reads in each answer what the request cost, and adds that up. Config.Observe has the emulator asked.
type meter struct {
	inner http.Client

	mu       sync.Mutex
	requests int
	units    float64
	observed float64
}

func (m *meter) observe(u dynamo.Use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.observed += u.Read + u.Write
}

func (m *meter) Do(r *http.Request) (*http.Response, error) {
	answer, err := m.inner.Do(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	var one struct {
		ConsumedCapacity struct{ CapacityUnits float64 }
	}
	var many struct {
		ConsumedCapacity []struct{ CapacityUnits float64 }
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	if json.Unmarshal(body, &one) == nil {
		m.units += one.ConsumedCapacity.CapacityUnits
	} else if json.Unmarshal(body, &many) == nil {
		for _, table := range many.ConsumedCapacity {
			m.units += table.CapacityUnits
		}
	}
	return answer, nil
}

// TestUnits holds what each call costs, in requests and in units by AWS's published rules: a read unit for each 4 KB begun, half
// for a Peek; a write unit for each KB begun of the larger of what stood and what stands; twice that in a transaction, of which
// the emulator tells half. The names of attributes, the version and the attempt count, too: some 20 bytes an item.
func TestUnits(t *testing.T) {
	m := &meter{}
	cfg := emulated(t, nil)
	cfg.AWS.HTTPClient, cfg.Observe = m, m.observe
	s := open(t, cfg)
	item := func(sort string, cond store.Cond, size int) store.Op {
		return store.Op{
			Kind: store.Put, Key: store.Key{Partition: "units", Sort: sort}, If: cond, Attempt: 1 << 62,
			Value: []byte(strings.Repeat("x", size-len("units")-len(sort))),
		}
	}
	key := func(sort string) store.Key { return store.Key{Partition: "units", Sort: sort} }
	write := func(ops ...store.Op) func() error {
		return func() error { _, err := s.Write(t.Context(), ops...); return err }
	}
	get := func(keys ...store.Key) func() error {
		return func() error { _, err := s.Get(t.Context(), keys...); return err }
	}
	for _, c := range []struct {
		what     string
		do       func() error
		requests int
		units    float64
	}{
		{"put of 960 bytes where nothing stands", write(item("a", store.Absent, 960)), 1, 1},
		{"put of 960 bytes on a version", write(item("a", store.Version(1), 960)), 1, 1},
		{"put of 960 bytes on anything", write(item("a", store.Any, 960)), 1, 1},
		{"put of 1 KB, which is more with its names", write(item("b", store.Absent, 1024)), 1, 2},
		{"put of 100 bytes over 1 KB", write(item("b", store.Version(1), 100)), 1, 2},
		{"put of 5,000 bytes", write(item("large", store.Absent, 5000)), 1, 5},
		{"get", get(key("a")), 1, 1},
		{"get of nothing", get(key("nothing")), 1, 1},
		{"get of 5,000 bytes", get(key("large")), 1, 2},
		{"get of three", get(key("a"), key("b"), key("large")), 1, 4},
		{"get of one twice", get(key("a"), key("a")), 1, 1},
		{"peek", func() error { _, err := s.Peek(t.Context(), key("a")); return err }, 1, 0.5},
		{"peek of two", func() error { _, err := s.Peek(t.Context(), key("a"), key("b")); return err }, 1, 1},
		{"query of 6 KB", func() error { _, err := s.Query(t.Context(), store.Range{Partition: "units"}); return err }, 1, 2},
		{"check", write(store.Op{Kind: store.Check, Key: key("a"), If: store.Version(3)}), 1, 1},
		{"check of anything", write(store.Op{Kind: store.Check, Key: key("a")}), 0, 0},
		{"delete", write(store.Op{Kind: store.Delete, Key: key("a"), If: store.Version(3)}), 1, 1},
		{"delete of nothing", write(store.Op{Kind: store.Delete, Key: key("a")}), 1, 1},
		{"transaction of two puts", write(item("c", store.Absent, 900), item("d", store.Absent, 900)), 1, 4 / 2},
		{"transaction of a put and a check", write(item("c", store.Version(1), 900),
			store.Op{Kind: store.Check, Key: key("d"), If: store.Version(1)}), 1, 4 / 2},
		{"transaction with a put on anything, read before", write(item("c", store.Version(2), 900), item("d", store.Any, 900)), 2, 1 + 4/2},
		{"each of three puts", func() error {
			_, err := s.WriteEach(t.Context(), item("e", store.Absent, 100), item("f", store.Absent, 100), item("g", store.Any, 100))
			return err
		}, 3, 3},
	} {
		m.requests, m.units, m.observed = 0, 0, 0
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if m.requests != c.requests || m.units != c.units {
			t.Errorf("%s took %d requests and %v units, want %d and %v", c.what, m.requests, m.units, c.requests, c.units)
		}
		if m.observed != m.units {
			t.Errorf("%s: Observe is told of %v units, want %v", c.what, m.observed, m.units)
		}
		t.Logf("%-50s %d requests, %v units", c.what, m.requests, m.units)
	}
}
