package dispatch

import "github.com/belfry-scheduler/belfry/lib/gate"

// Wanting counts the runs that want in at a gate and are not seen to yet.
func Wanting(d *Dispatcher, at gate.ID) int {
	d.entering.mu.Lock()
	defer d.entering.mu.Unlock()
	if a := d.entering.at[at]; a != nil {
		return len(a.wanting)
	}
	return 0
}
