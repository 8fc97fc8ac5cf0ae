package secret

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

// FuzzRecord puts anything in the place of a secret's record. It then gives the value that was kept, or none: never another.
func FuzzRecord(f *testing.F) {
	const name, value = "hook-token", "kept"
	chance := rand.NewChaCha8([32]byte{1})
	text, err := NewKey(chance)
	if err != nil {
		f.Fatal(err)
	}
	kept := memory.New(memory.Config{})
	v, err := New(Config{Store: kept, Now: noon.Local, Random: chance, NewID: chance.Uint64, Keys: func() (*Ring, error) { return ParseRing(text) }})
	if err != nil {
		f.Fatal(err)
	}
	ctx := context.Background()
	if _, _, err := v.Set(ctx, "acme", name, value); err != nil {
		f.Fatal(err)
	}
	items, err := kept.Get(ctx, keyOf("acme", name))
	if err != nil {
		f.Fatal(err)
	}
	sealed := items[0].Value
	f.Add(sealed)
	f.Add(sealed[:len(sealed)-1])
	f.Fuzz(func(t *testing.T, stored []byte) {
		if _, err := kept.Write(ctx, store.Op{Kind: store.Put, Key: keyOf("acme", name), Value: stored}); err != nil {
			t.Skip(err) // larger than any item
		}
		got, err := v.Value(ctx, "acme", name)
		if err == nil && got != value {
			t.Fatalf("%x opens as %q", stored, got)
		}
		if err != nil && bytes.Equal(stored, sealed) {
			t.Fatal(err)
		}
		infos, _, err := v.List(ctx, "acme", "", 10)
		if err == nil && (len(infos) != 1 || infos[0].Name != name) {
			t.Fatalf("%x is listed as %+v", stored, infos)
		}
	})
}

// FuzzRing reads anything as a file of keys. An error names lines, and nothing that stands in them.
func FuzzRing(f *testing.F) {
	text, err := NewKey(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("# newest first\r\n\n " + text + "\n")
	f.Add(text + "x")
	f.Fuzz(func(t *testing.T, text string) {
		ring, err := ParseRing(text)
		if err != nil {
			for _, line := range bytes.Fields([]byte(text)) {
				if len(line) > 20 && bytes.Contains([]byte(err.Error()), line) {
					t.Fatalf("the error shows what stands there: %v", err)
				}
			}
			return
		}
		if k, ok := ring.current(); !ok || len(ring.keys) > maxKeys {
			t.Fatalf("%d keys", len(ring.keys))
		} else if found, ok := ring.find(k.id); !ok || found.id != k.id {
			t.Fatalf("the first key, %s, is not found", k.id)
		}
	})
}
