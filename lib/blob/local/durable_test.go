package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocloud "gocloud.dev/blob"

	"github.com/belfry-scheduler/belfry/lib/blob"
)

// disk watches what is synced: what it has not seen, a power cut may take.
type disk struct {
	Host
	t        *testing.T
	contents []string            // of the files synced, at that moment
	entries  map[string][]string // of the directories synced, at the latest such moment
	calls    int
	fail     int // the number of the call that fails, counted from 1
}

var errDisk = errors.New("input/output error")

func (d *disk) Open(name string) (File, error) {
	f, err := d.Host.Open(name)
	return watched{f, d}, err
}

func (d *disk) CreateTemp(dir string) (File, error) {
	f, err := d.Host.CreateTemp(dir)
	return watched{f, d}, err
}

type watched struct {
	File
	d *disk
}

func (w watched) Sync() error { return w.d.sync(w.File) }

func (d *disk) sync(f File) error {
	d.calls++
	if d.calls == d.fail {
		return errDisk
	}
	info, err := f.Stat()
	if err != nil {
		d.t.Error(err)
	}
	if !info.IsDir() {
		data, err := os.ReadFile(f.Name())
		if err != nil {
			d.t.Error(err)
		}
		if !strings.Contains(f.Name(), temporary) {
			d.t.Errorf("%s was synced only after it had its name", f.Name())
		}
		d.contents = append(d.contents, string(data))
		return nil
	}
	found, err := d.ReadDir(f.Name(), 0)
	if err != nil {
		d.t.Error(err)
	}
	d.entries[f.Name()] = nil
	for _, e := range found {
		d.entries[f.Name()] = append(d.entries[f.Name()], e.Name())
	}
	return nil
}

// survives tells whether a path would be found after a power cut, from a folder down that always was there.
func (d *disk) survives(from, path string) bool {
	for ; path != from; path = filepath.Dir(path) {
		if !slices.Contains(d.entries[filepath.Dir(path)], filepath.Base(path)) {
			d.t.Logf("the entry of %s was not synced", path)
			return false
		}
	}
	return true
}

func start(t *testing.T, d *disk, dir string) *blob.Bucket {
	t.Helper()
	d.t, d.entries = t, map[string][]string{}
	f, err := openFolder(d, dir)
	if err != nil {
		t.Fatal(err)
	}
	return blob.New(gocloud.NewBucket(f))
}

var report = blob.Ref{Tenant: "acme", Kind: blob.Result, ID: "x"}

func TestP1_Fault50_a_put_is_synced_with_every_directory_before_its_answer(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "data", "blobs")
	d := &disk{}
	b := start(t, d, dir)
	key, err := b.Put(t.Context(), report, []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(key, "#")
	path := filepath.Join(dir, filepath.FromSlash(name))
	if !d.survives(base, path) || !slices.Equal(d.contents, []string{"content"}) {
		t.Errorf("after the answer %q are synced, want the content and all directories", d.contents)
	}

	// The next process can't know whether what it finds was ever synced.
	d = &disk{}
	b = start(t, d, dir)
	if _, err := b.Put(t.Context(), report, []byte("content")); err != nil {
		t.Fatal(err)
	}
	if !d.survives(filepath.Dir(dir), path) {
		t.Error("the answer that it is there was given before it was synced")
	}
}

func TestP1_Fault49_a_failed_sync_is_no_acknowledgement(t *testing.T) {
	for failing := 1; ; failing++ {
		d := &disk{}
		dir := t.TempDir()
		b := start(t, d, dir)
		d.calls, d.fail = 0, failing
		_, err := b.Put(t.Context(), report, []byte("content"))
		if err == nil {
			if failing < 4 {
				t.Fatalf("a put syncs only %d times", failing-1)
			}
			return
		}
		if !errors.Is(err, errDisk) && !strings.Contains(err.Error(), errDisk.Error()) {
			t.Fatalf("put gave %v, want the disk's error", err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "b/*/*/*/*/*")); err != nil || left != nil {
			t.Fatalf("the put whose sync %d failed left %q, %v", failing, left, err)
		}
		d.fail = 0
		d.contents = nil
		key, err := b.Put(t.Context(), report, []byte("content"))
		if err != nil || len(d.contents) != 1 {
			t.Fatalf("put after the failed sync %d gave %v and synced %q, want the content", failing, err, d.contents)
		}
		if got, err := b.Get(t.Context(), "acme", key); err != nil || string(got) != "content" {
			t.Fatalf("get after the failed sync %d gave %q, %v", failing, got, err)
		}
	}
}
