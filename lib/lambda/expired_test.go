package lambda

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/cloud"
)

func TestExpiredBlobsAreDeletedByATick(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, cleaning, 30, 0, time.UTC)
	blobs, err := local.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{Data: &cloud.Data{Blobs: blobs}, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	put := func(id string, days int) string {
		key, err := blobs.Put(t.Context(), blob.Ref{Tenant: "acme", Kind: blob.Log, ID: id, Expires: now.AddDate(0, 0, days)}, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	kept := put("kept", 1)
	const expired = 1001 // more than one batch
	for i := range expired {
		put(fmt.Sprint(i), -1)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	h.cleanUp(over) // an invocation whose time is over does nothing more
	h.cleanUp(t.Context())
	if left, err := blobs.DeleteExpired(t.Context(), now, expired); err != nil || left != 0 {
		t.Errorf("%d expired blobs were left, %v", left, err)
	}
	if _, err := blobs.Get(t.Context(), "acme", kept); err != nil {
		t.Errorf("one that has not expired: %v", err)
	}
}
