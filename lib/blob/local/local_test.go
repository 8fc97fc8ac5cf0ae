package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/blobtest"
	"github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func open(t *testing.T, url string) *blob.Bucket {
	t.Helper()
	b, err := local.Open(t.Context(), url)
	if err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	return b
}

func TestConformanceFile(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) *blob.Bucket {
		return open(t, "file://"+filepath.Join(t.TempDir(), "not", "there", "yet"))
	})
}

func TestConformanceMem(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) *blob.Bucket { return open(t, "mem://") })
}

func TestOtherURLsAreRefusedAndNameWhatWouldBeRight(t *testing.T) {
	for _, url := range []string{"", "mem:", "mem://x", "file://relative", "file:", "/a/folder", "s3://bucket", "file:///a?create_dir=1", "://"} {
		_, err := local.Open(t.Context(), url)
		if len(invalid.All(err)) != 1 {
			t.Errorf("%q gave %v, want an invalid field", url, err)
		}
	}
}

func ref(id string) blob.Ref {
	return blob.Ref{Tenant: "acme", Kind: blob.Result, ID: id, Expires: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
}

// files lists the files under a folder, by their paths within it.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestBlobsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	first := open(t, "file://"+dir)
	key, err := first.Put(t.Context(), ref("x"), []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, "file://"+dir)
	if got, err := second.Get(t.Context(), "acme", key); err != nil || string(got) != "content" {
		t.Fatalf("get gave %q, %v", got, err)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("one blob made the files %q", got)
	}
}

func TestFault49_a_damaged_file_is_refused(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"torn tail":   func(data []byte) []byte { return data[:len(data)/2] },
		"flipped bit": func(data []byte) []byte { data[3] ^= 4; return data },
		"emptied":     func([]byte) []byte { return nil },
		"grown":       func(data []byte) []byte { return append(data, make([]byte, blob.MaxBytes)...) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, "file://"+dir)
			content := []byte("the content of the blob")
			key, err := b.Put(t.Context(), ref("x"), content)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, files(t, dir)[0])
			if err := os.WriteFile(path, damage(slices.Clone(content)), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Get(t.Context(), "acme", key); !errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("get gave %.40q, %v, want ErrCorrupt", got, err)
			}
			if got, _, err := b.GetRange(t.Context(), "acme", key, 0, 99); !errors.Is(err, blob.ErrCorrupt) {
				t.Errorf("all of it as a part gave %.40q, %v, want ErrCorrupt", got, err)
			}
			if _, err := b.Put(t.Context(), ref("x"), content); err == nil {
				t.Error("putting again acknowledged a blob that is damaged")
			}
		})
	}
}

func TestWhatACrashLeavesIsClearedAndNeverListed(t *testing.T) {
	dir := t.TempDir()
	b := open(t, "file://"+dir)
	left := filepath.Join(dir, ".tmp", "left")
	if err := os.WriteFile(left, []byte("half a bl"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "b", ".DS_Store")
	if err := os.Mkdir(filepath.Dir(foreign), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := b.DeleteExpired(t.Context(), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 10); n != 0 || err != nil {
		t.Errorf("deleted %d, %v, want nothing", n, err)
	}
	open(t, "file://"+dir)
	if got := files(t, dir); len(got) != 1 || got[0] != filepath.Join("b", ".DS_Store") {
		t.Errorf("left after the start: %q, want only what is not ours", got)
	}
}

func TestFault49_a_folder_that_takes_no_files_is_refused(t *testing.T) {
	dir := t.TempDir()
	b := open(t, "file://"+dir)
	// A file where a directory must be made works for root, too, whom permissions do not stop.
	if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := b.Put(t.Context(), ref("x"), []byte("content")); err == nil {
		t.Errorf("put gave %q, want an error", key)
	}
	if left := files(t, filepath.Join(dir, ".tmp")); len(left) != 0 {
		t.Errorf("the failed put left %q", left)
	}
	if _, err := local.Open(t.Context(), "file://"+filepath.Join(dir, "b", "in", "a", "file")); err == nil {
		t.Error("a folder below a file was opened")
	}
}

func TestExpiryLeavesNoEmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	b := open(t, "file://"+dir)
	for i := range 50 {
		if _, err := b.Put(t.Context(), ref(fmt.Sprint(i)), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.DeleteExpired(t.Context(), time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), 100); n != 50 || err != nil {
		t.Fatalf("deleted %d, %v, want 50", n, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != ".tmp" {
		t.Errorf("left %v, %v, want only .tmp", left, err)
	}
	if _, err := b.Put(t.Context(), ref("x"), []byte("x")); err != nil {
		t.Errorf("put after the directories went: %v", err)
	}
}

func TestPutsSurviveACleanupAtTheSameTime(t *testing.T) {
	b := open(t, "file://"+t.TempDir())
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if _, err := b.DeleteExpired(t.Context(), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 3); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for i := range 200 {
		if _, err := b.Put(t.Context(), ref(fmt.Sprint(i%7)), []byte("x")); err != nil {
			t.Errorf("put %d: %v", i, err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("cleanup: %v", err)
	}
}
