package lambda

import (
	"context"
	"encoding/json"
)

// TickHandler answers the events that ask for a tick.
type TickHandler func(context.Context, json.RawMessage) error

// Tick gives the handler of the function that ticks: one event, one pass over the shards.
func Tick(h *Host) (TickHandler, error) {
	handle := Ending(h, func(ctx context.Context, _ json.RawMessage) (struct{}, error) {
		_, err := h.Node.Ticker.Tick(ctx)
		return struct{}{}, err
	})
	return func(ctx context.Context, event json.RawMessage) error { _, err := handle(ctx, event); return err }, nil
}
