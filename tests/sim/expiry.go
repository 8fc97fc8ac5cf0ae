package sim

import (
	"container/heap"
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// expiries are items that expire, the first one on top. An entry of an item that was written again since is passed over when its time
// has come.
type expiries []store.Item

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].Expires.Before(e[j].Expires) }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiries) Push(x any)        { *e = append(*e, x.(store.Item)) }
func (e *expiries) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func (e *expiries) add(item store.Item) {
	heap.Push(e, store.Item{Key: item.Key, Version: item.Version, Expires: item.Expires})
}

// expire removes what expired before an instant, as an engine does in its own time: all of it, also where the world ends meanwhile.
func (w *World) expire(before time.Time) (removed int) {
	for len(w.expiries) > 0 && w.expiries[0].Expires.Before(before) {
		item := heap.Pop(&w.expiries).(store.Item)
		stands, err := w.store.Get(context.WithoutCancel(w.ctx), item.Key)
		if err != nil {
			panic(err)
		}
		if stands[0].Version != item.Version || !stands[0].Expires.Equal(item.Expires) {
			continue
		}
		if _, err := w.put([]store.Op{{Kind: store.Delete, Key: item.Key}}); err != nil {
			panic(err)
		}
		removed++
	}
	return removed
}
