package tick

import "github.com/belfry-scheduler/belfry/lib/timer"

// Help asks for a tick beside others.
type Help struct {
	Upto int64 `json:"upto"` // Unix ms
}

// done tells whether a shard has nothing left of what help was asked for.
func (h *Help) done(s timer.Shard) bool { return h != nil && s.Watermark >= h.Upto }
