package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

var taken = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func emptyTarget(t *testing.T) backup.Target {
	t.Helper()
	bucket := blob.New(memblob.OpenBucket(nil))
	t.Cleanup(func() { bucket.Close() })
	return backup.Target{Store: memory.New(memory.Config{}), Blobs: bucket}
}

func write(t *testing.T, from backup.Target) []byte {
	t.Helper()
	var out bytes.Buffer
	source := backup.Source{Store: from.Store, Blobs: from.Blobs, Now: func() time.Time { return taken }, Version: "v1"}
	if _, _, err := backup.Write(t.Context(), &out, source, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// some holds a few items and blobs.
func some(t *testing.T) backup.Target {
	t.Helper()
	from := emptyTarget(t)
	for i := range 20 {
		item := store.Item{Key: store.Key{Partition: "p\x00", Sort: fmt.Sprint(i, "\xff")}, Version: uint64(i + 1), Value: []byte(strings.Repeat("v", i)), Attempt: uint64(i)}
		if err := from.Store.Import(t.Context(), item); err != nil {
			t.Fatal(err)
		}
		if _, err := from.Blobs.Put(t.Context(), blob.Ref{Tenant: "acme", Kind: blob.Log, ID: fmt.Sprint(i)}, []byte("log")); err != nil {
			t.Fatal(err)
		}
	}
	return from
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	text := write(t, some(t))
	told := backup.Count{}
	about, count, err := backup.Verify(t.Context(), bytes.NewReader(text), func(c backup.Count) { told = c })
	if err != nil || !about.Taken.Equal(taken) || about.Version != "v1" || count.Items != 20 || count.Blobs != 20 || told != count {
		t.Errorf("read as %+v, %+v, told %+v, %v", about, count, told, err)
	}
}

// TestFault50_ATornBackupIsRefused cuts a backup at every byte: whatever a crash or a lost connection leaves is no backup.
func TestFault50_ATornBackupIsRefused(t *testing.T) {
	text := write(t, some(t))
	for n := range text {
		_, _, err := backup.Verify(t.Context(), bytes.NewReader(text[:n]), nil)
		if n == 0 && !errors.Is(err, backup.ErrNotBackup) || n > 0 && !errors.Is(err, backup.ErrTorn) {
			t.Fatalf("the first %d of %d bytes gave %v", n, len(text), err)
		}
	}
}

// TestFault49_ADamagedBackupIsRefused flips a bit of every byte. The compression has a bit or two that mean nothing: only where all
// is read as it was written may it be read at all.
func TestFault49_ADamagedBackupIsRefused(t *testing.T) {
	from := some(t)
	text := write(t, from)
	want := fmt.Sprint(storetest.Items(t, from.Store))
	for n := range text {
		damaged := slices.Clone(text)
		damaged[n] ^= 1 << (n % 8)
		to := emptyTarget(t)
		if _, _, err := backup.Load(t.Context(), bytes.NewReader(damaged), to, nil); err == nil && fmt.Sprint(storetest.Items(t, to.Store)) != want {
			t.Fatalf("a bit of byte %d of %d was flipped, and nobody minds", n, len(text))
		}
	}
	for _, more := range [][]byte{{0}, text} {
		if _, _, err := backup.Verify(t.Context(), bytes.NewReader(append(slices.Clone(text), more...)), nil); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%d bytes more gave %v, want that it is damaged", len(more), err)
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	text := write(t, some(t))
	for _, c := range []struct {
		text string
		want error
	}{
		{"belfry-backup 2\nwhat is to come", backup.ErrNewer},
		{"belfry-backup 0\n", backup.ErrNotBackup},
		{"belfry-backup one\n", backup.ErrNotBackup},
		{"PK\x03\x04", backup.ErrNotBackup},
		{strings.Repeat("x", 10_000), backup.ErrNotBackup},
		{"belfry-backup 1\n" + strings.Repeat("x", 100), backup.ErrDamaged},
		{string(text[:16]), backup.ErrTorn},
	} {
		if _, err := backup.Open(strings.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%.20q gave %v, want %v", c.text, err, c.want)
		}
	}
	cause := errors.New("the disk is full")
	_, _, err := backup.Write(t.Context(), failing{cause}, backup.Source{Store: some(t).Store, Blobs: some(t).Blobs, Now: time.Now}, nil)
	if !errors.Is(err, cause) {
		t.Errorf("a writer that fails gave %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := backup.Verify(ctx, bytes.NewReader(text), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over gave %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A store in which only tokens were made, before its first server, owes nothing.
func TestAStoreThatNoServerHasUsedIsRestored(t *testing.T) {
	from, to := emptyTarget(t), emptyTarget(t)
	if err := from.Store.Import(t.Context(), store.Item{Key: store.Key{Partition: "token#1", Sort: "-"}, Version: 1, Value: []byte{1, 0xa0}}); err != nil {
		t.Fatal(err)
	}
	report, err := backup.Restore(t.Context(), bytes.NewReader(write(t, from)), to, backup.Options{Now: taken, NewID: func() uint64 { return 1 }})
	if err != nil || report.Count.Items != 1 || len(storetest.Items(t, to.Store)) != 1 {
		t.Errorf("restored: %+v, %v", report, err)
	}
}
