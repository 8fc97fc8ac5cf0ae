package lease

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

// lost keeps messages that cannot be read: nobody can tell whose they are.
type lost struct {
	dispatch *dispatch.Dispatcher
	blobs    *blob.Bucket
	metrics  *metrics.Registry
	log      *slog.Logger
}

const (
	keepLost = 60 * 24 * time.Hour // as long as timers are kept: time enough for somebody to look
	toldLost = 1 << 10             // bytes of a message that are logged
)

// keep puts a message where an operator finds it, counts it and tells of it. The same message again is the same blob. Once it is kept the
// message may be deleted.
func (l lost) keep(ctx context.Context, m queue.Message, why error) error {
	sum := sha256.Sum256(m.Body)
	ctx, cancel := context.WithTimeout(ctx, l.dispatch.Lease/3)
	defer cancel()
	key, err := l.blobs.Put(ctx, blob.Ref{Tenant: blob.NoTenant, Kind: blob.Message, ID: hex.EncodeToString(sum[:16]),
		Expires: l.dispatch.Now().Add(keepLost)}, m.Body)
	if err != nil {
		return fmt.Errorf("keep a message that cannot be read: %w", err)
	}
	l.metrics.DeadLetters.Inc("message")
	l.log.ErrorContext(ctx, "a message cannot be read, and was kept", "error", why, "blob", key, "bytes", len(m.Body),
		"begins", base64.StdEncoding.EncodeToString(m.Body[:min(len(m.Body), toldLost)]))
	return nil
}
