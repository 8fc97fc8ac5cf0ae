package backup_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

const formLine = "belfry-backup 1\n"

// FuzzRead reads anything as a backup: what stands behind the first line, packed or as it is. What cannot be read is refused as one of
// the errors that callers know, and a restore of what can is, too, or gives a store that can be read.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../../tests/upgrade/testdata/*/belfry.backup")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		f.Fatal(err)
	}
	packed, ours := bytes.CutPrefix(whole, []byte(formLine))
	if !ours {
		f.Fatalf("%s has another first line", files[0])
	}
	unpack, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		f.Fatal(err)
	}
	defer unpack.Close()
	plain, err := io.ReadAll(unpack)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, plain)
	f.Add(true, plain[:len(plain)/2])
	f.Add(false, packed)
	f.Add(true, []byte("h\x03\x01\xa1\x01e\x7f"))
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	known := []error{backup.ErrNotBackup, backup.ErrTorn, backup.ErrDamaged, backup.ErrNewer}
	f.Fuzz(func(t *testing.T, plain bool, text []byte) {
		if plain {
			text = pack.EncodeAll(text, nil)
		}
		text = append([]byte(formLine), text...)
		_, count, err := backup.Verify(t.Context(), bytes.NewReader(text), nil)
		if err != nil {
			for _, k := range known {
				if errors.Is(err, k) {
					return
				}
			}
			t.Fatalf("%v, which callers do not know", err)
		}
		into := backup.Target{Store: memory.New(memory.Config{}), Blobs: blob.New(memblob.OpenBucket(nil))}
		defer into.Blobs.Close()
		report, err := backup.Restore(t.Context(), bytes.NewReader(text), into, backup.Options{Now: taken, NewID: rand.Uint64})
		if err != nil && !errors.Is(err, backup.ErrDamaged) && !errors.Is(err, record.ErrNewer) && !errors.Is(err, record.ErrBroken) && !errors.Is(err, store.ErrTooLarge) {
			t.Fatalf("%d items that can be read, and a restore of them: %v, %+v", count.Items, err, report)
		}
	})
}
