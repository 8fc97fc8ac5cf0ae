// Package local has a clock default on one line, which is allowed, and a call on another, which is not.
package local

import "time"

// Queue tells the time.
type Queue struct{ Now func() time.Time }

// New is where the default is injected.
func New(cfg Queue) (Queue, time.Time) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg, time.Now() // want forbidigo "take now"
}
