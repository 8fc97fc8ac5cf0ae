package oracle_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// BenchmarkStored is what a change of an item costs, in the mix of a quiet life: go test ./tests/oracle -bench Stored -benchmem
func BenchmarkStored(b *testing.B) {
	whole := quiet(b)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		j := oracle.New(oracle.Config{})
		standing := map[store.Key]store.Item{}
		for _, e := range whole {
			if e.asked != nil || e.call != nil || e.ret != nil {
				switch {
				case e.asked != nil:
					j.Asked(*e.asked)
				case e.call != nil:
					j.Called(*e.call)
				case e.ret != nil:
					j.Returned(*e.ret)
				}
				continue
			}
			if !e.stored() {
				continue
			}
			before := standing[e.key]
			before.Key = e.key
			after := store.Item{Key: e.key}
			delete(standing, e.key)
			if !e.gone {
				after = store.Item{Key: e.key, Version: before.Version + 1, Value: e.value, Expires: e.expires}
				standing[e.key] = after
			}
			j.Stored(e.at, before, after)
			if n++; n == b.N {
				return
			}
		}
	}
}
