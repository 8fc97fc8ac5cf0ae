package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type fixture struct {
	*Vault
	t     *testing.T
	now   time.Time
	keys  string // the key file
	kept  store.Store
	chaos *rand.ChaCha8
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, now: noon, kept: memory.New(memory.Config{}), chaos: rand.NewChaCha8([32]byte{1})}
	f.keys = f.key()
	f.Vault = f.vault(f.kept)
	return f
}

func (f *fixture) key() string {
	f.t.Helper()
	text, err := NewKey(f.chaos)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

func (f *fixture) vault(s store.Store) *Vault {
	f.t.Helper()
	v, err := New(Config{Store: s, Now: func() time.Time { return f.now }, Random: f.chaos,
		NewID: func() uint64 { return f.chaos.Uint64() | 1 }, Keys: func() (*Ring, error) { return ParseRing(f.keys) }})
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *fixture) set(tenant, name, value string) (created bool) {
	f.t.Helper()
	_, created, err := f.Set(f.t.Context(), tenant, name, value)
	if err != nil {
		f.t.Fatal(err)
	}
	return created
}

func (f *fixture) want(tenant, name, value string) {
	f.t.Helper()
	if got, err := f.Value(f.t.Context(), tenant, name); got != value || err != nil {
		f.t.Errorf("%s of %s is %q, %v; want %q", name, tenant, got, err, value)
	}
}

func (f *fixture) item(tenant, name string) store.Item {
	f.t.Helper()
	items, err := f.kept.Get(f.t.Context(), keyOf(tenant, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return items[0]
}

func TestSecretsAreKept(t *testing.T) {
	f := setup(t)
	if !f.set("acme", "token", "one") {
		t.Error("the first was not created")
	}
	f.now = noon.Add(time.Hour)
	if f.set("acme", "token", "two") {
		t.Error("the second was created")
	}
	f.set("acme", "a.b", strings.Repeat("ü", MaxValue/2))
	f.want("acme", "token", "two")
	f.want("acme", "a.b", strings.Repeat("ü", MaxValue/2))
	infos, more, err := f.List(t.Context(), "acme", "", 10)
	if err != nil || more || len(infos) != 2 || infos[1].Name != "token" || infos[1].Created != noon || infos[1].Updated != f.now || !infos[1].Current {
		t.Errorf("listed as %+v, %t, %v", infos, more, err)
	}
	if err := f.Delete(t.Context(), "acme", "token"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{f.Delete(t.Context(), "acme", "token"), third(f.Value(t.Context(), "acme", "token"))} {
		if !errors.Is(err, ErrMissing) {
			t.Errorf("after the deletion: %v", err)
		}
	}
}

func third(_ string, err error) error { return err }

func TestP12_secrets_of_tenants_are_apart(t *testing.T) {
	f := setup(t)
	f.set("acme", "token", "acme's")
	f.set("acme", "other", "acme's other")
	f.set("rival", "token", "rival's")
	f.want("acme", "token", "acme's")
	f.want("rival", "token", "rival's")
	if infos, _, err := f.List(t.Context(), "rival", "", 10); err != nil || len(infos) != 1 {
		t.Errorf("the rival's list is %v, %v", infos, err)
	}
	if err := f.Delete(t.Context(), "rival", "other"); !errors.Is(err, ErrMissing) {
		t.Errorf("the rival deletes another's: %v", err)
	}
	// Whoever can write to the store moves a sealed value to a place that he may read.
	stolen := f.item("acme", "token").Value
	for _, to := range []store.Key{keyOf("rival", "token"), keyOf("rival", "mine"), keyOf("acme", "other")} {
		if _, err := f.kept.Write(t.Context(), store.Op{Kind: store.Put, Key: to, Value: stolen}); err != nil {
			t.Fatal(err)
		}
		tenant := strings.TrimPrefix(to.Partition, "secret#")
		if got, err := f.Value(t.Context(), tenant, to.Sort); err == nil || errors.Is(err, ErrMissing) || got != "" {
			t.Errorf("moved to %s it opens: %q, %v", to, got, err)
		}
	}
}

func TestTheStoreTellsNothing(t *testing.T) {
	f := setup(t)
	const canary = "canary-9f2c7b"
	f.set("acme", "one", canary)
	f.set("acme", "two", canary)
	one, two := f.item("acme", "one").Value, f.item("acme", "two").Value
	for _, text := range []string{canary, f.keys} {
		if bytes.Contains(one, []byte(text)) {
			t.Errorf("the record holds %q", text)
		}
	}
	f.set("acme", "one", canary)
	if again := f.item("acme", "one").Value; bytes.Equal(again, one) || bytes.Equal(one, two) {
		t.Error("the same value twice gives the same record: the nonce is not random")
	}
	var sealed stored
	if err := record.Decode(two, &sealed); err != nil {
		t.Fatal(err)
	}
	sealed.Sealed[3] ^= 1
	damaged, err := record.Encode(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.kept.Write(t.Context(), store.Op{Kind: store.Put, Key: keyOf("acme", "two"), Value: damaged}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Value(t.Context(), "acme", "two"); err == nil {
		t.Errorf("a damaged record opens as %q", got)
	}
}

func TestKeysAreRotated(t *testing.T) {
	f := setup(t)
	for i := range 20 {
		f.set("acme", fmt.Sprintf("s%02d", i), fmt.Sprint(i))
	}
	old, updated := f.keys, f.now
	f.now = noon.Add(time.Hour)
	f.keys = f.key() + "\n" + old
	if n, err := f.Rotate(t.Context(), "acme"); n != 20 || err != nil {
		t.Fatalf("sealed again: %d, %v", n, err)
	}
	if n, err := f.Rotate(t.Context(), "acme"); n != 0 || err != nil {
		t.Errorf("the second time: %d, %v", n, err)
	}
	infos, _, err := f.List(t.Context(), "acme", "", 100)
	for _, info := range infos {
		if !info.Current || info.Updated != updated {
			t.Errorf("after it: %+v, %v", info, err)
		}
	}

	f.keys, _, _ = strings.Cut(f.keys, "\n") // the old one is thrown away
	f.Vault = f.vault(f.kept)
	for i := range 20 {
		f.want("acme", fmt.Sprintf("s%02d", i), fmt.Sprint(i))
	}
	f.keys = old
	f.Vault = f.vault(f.kept)
	if _, err := f.Value(t.Context(), "acme", "s00"); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), infos[0].Key) {
		t.Errorf("under the old key alone: %v, want an error that names the missing key", err)
	}
}

// meddler changes a secret between the moment when a rotation has read it and the moment when it writes.
type meddler struct {
	store.Store
	before func()
}

func (m *meddler) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Store.Write(ctx, ops...)
}

func TestRotationKeepsWhatIsSetMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		meddle func(*fixture, *Vault)
		want   string
	}{
		"set under the old key": {func(f *fixture, old *Vault) { old.Set(f.t.Context(), "acme", "token", "newer") }, "newer"},
		"deleted":               {func(f *fixture, old *Vault) { old.Delete(f.t.Context(), "acme", "token") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.set("acme", "token", "older")
			old := f.Vault
			f.keys = f.key() + "\n" + f.keys
			f.Vault = f.vault(&meddler{f.kept, func() { c.meddle(f, old) }})
			if _, err := f.Rotate(t.Context(), "acme"); err != nil {
				t.Fatal(err)
			}
			got, err := f.Value(t.Context(), "acme", "token")
			if got != c.want || c.want == "" && !errors.Is(err, ErrMissing) {
				t.Errorf("after it %q, %v", got, err)
			}
			if infos, _, _ := f.List(t.Context(), "acme", "", 10); c.want != "" && !infos[0].Current {
				t.Errorf("after it %+v", infos)
			}
		})
	}
}

func TestWithoutAKey(t *testing.T) {
	f := setup(t)
	f.set("acme", "token", "one")
	v, err := New(Config{Store: f.kept, Now: f.Now, Random: f.chaos, NewID: f.NewID})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = v.Set(t.Context(), "acme", "x", "y")
	_, rotated := v.Rotate(t.Context(), "acme")
	for what, err := range map[string]error{"set": err, "value": third(v.Value(t.Context(), "acme", "token")), "rotate": rotated} {
		if !errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := third(v.Value(t.Context(), "acme", "x")); !errors.Is(err, ErrMissing) {
		t.Errorf("a secret that is not there: %v", err)
	}
	if infos, _, err := v.List(t.Context(), "acme", "", 10); err != nil || len(infos) != 1 {
		t.Errorf("listed: %v, %v", infos, err)
	}
	if err := v.Delete(t.Context(), "acme", "token"); err != nil {
		t.Error(err)
	}
}

func TestListsComeInPages(t *testing.T) {
	f := setup(t)
	for i := range 7 {
		f.set("acme", fmt.Sprintf("s%d", i), strings.Repeat("x", MaxValue))
	}
	var names []string
	for after := ""; ; {
		infos, more, err := f.List(t.Context(), "acme", after, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			names = append(names, info.Name)
			after = info.Name
		}
		if !more {
			break
		}
	}
	if got := strings.Join(names, " "); got != "s0 s1 s2 s3 s4 s5 s6" {
		t.Errorf("got %s", got)
	}
}

func TestP11_secrets_are_bounded(t *testing.T) {
	f := setup(t)
	for value, says := range map[string]string{
		"": "not empty", strings.Repeat("h", MaxValue+1): "at most 32768", "hush\x00": "without NUL", "hush\xff": "UTF-8",
	} {
		_, _, err := f.Set(t.Context(), "acme", "x", value)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hh") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%.10q: %v", value, err)
		}
	}
	for _, name := range []string{"", "../x", "a/b", "-x", "a b", strings.Repeat("x", 129)} {
		if _, _, err := f.Set(t.Context(), "acme", name, "x"); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
	for i := range MaxNumber {
		f.set("acme", fmt.Sprintf("s%04d", i), "x")
	}
	if _, _, err := f.Set(t.Context(), "acme", "more", "x"); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	f.set("acme", "s0000", "y")
	f.set("rival", "s", "x")
}

func TestKeyFilesAreRead(t *testing.T) {
	f := setup(t)
	for text, says := range map[string]string{
		f.key(): "", "# newest\n" + f.key() + "\r\n\n  " + f.key() + "\n": "",
		"":                               "no key",
		"# nothing\n":                    "no key",
		f.key() + "\nhush":               "line 2",
		f.key()[:40]:                     "line 1",
		strings.Repeat(f.key()+"\n", 17): "more than 16",
	} {
		_, err := ParseRing(text)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%d bytes: %v, want %q", len(text), err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}
