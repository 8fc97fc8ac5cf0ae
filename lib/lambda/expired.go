package lambda

import "context"

// cleaning is the minute of each hour in which a tick by the clock deletes expired blobs. An hour that had no tick in it leaves them to
// the next; nothing reads them any more.
const cleaning = 17

// cleanUp deletes blobs that have expired, as long as the invocation has time. It fails nothing: the tick has done its work.
func (h *Host) cleanUp(ctx context.Context) {
	ctx, stop := h.working(ctx)
	defer stop()
	const batch = 1000
	for {
		deleted, err := h.Data.Blobs.DeleteExpired(ctx, h.Now(), batch)
		if err != nil && ctx.Err() == nil {
			h.Log.WarnContext(ctx, "expired blobs were not deleted", "error", err)
		}
		if err != nil || deleted < batch {
			return
		}
	}
}
