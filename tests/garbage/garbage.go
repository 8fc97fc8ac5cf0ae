// Package garbage has the processes of tests collect it seldom.
package garbage

import "runtime/debug"

// Seldom lets four times as much garbage gather as is in use, before it is collected. It is for TestMain of packages whose worlds and servers
// are small and many: a heap that small is collected all the time by Go's own rule, for a sixth to a quarter of the work of the processor.
func Seldom() { debug.SetGCPercent(400) }
