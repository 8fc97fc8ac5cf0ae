package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// fetched is an answer of a server, whatever it is.
func fetched(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// noise is text that no compression makes smaller, so that it is found in a file as it is.
func noise(random *rand.ChaCha8, size int) string {
	raw := make([]byte, size)
	_, _ = random.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// filled is a data folder with many jobs, of which it gives one's text, and a run with a payload of its own file.
func filled(t *testing.T) (data, text, run string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	random := rand.NewChaCha8([32]byte{49})
	var jobs []string
	for n := range 300 {
		said := noise(random, 300)
		if n == 150 {
			text = said
		}
		jobs = append(jobs, fmt.Sprintf(`{"name": "j%03d", "description": %q, "target": {"http": {"url": "http://127.0.0.1:1/"}}, "retry": {"max_attempts": 1}}`, n, said))
	}
	payload := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(payload, []byte(`"`+noise(random, 60_000)+`"`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("fill", func(t *testing.T) {
		call := to(t, dev(t, "--data", data))
		call(0, "["+strings.Join(jobs, ",")+"]", "job", "apply", "-f", "-")
		run = decode[wire.Run](t, call(0, "", "job", "trigger", "j000", "--payload", "@"+payload, "-o", "json").out).ID
		eventually(t, "the run ends", func() (bool, string) {
			r := decode[wire.Run](t, call(0, "", "run", "get", run, "-o", "json").out)
			return r.State == "dead" || r.State == "failed", fmt.Sprint(r.State)
		})
	})
	return data, text, run
}

// flip changes one bit of the table that has the text, and gives the table's name.
func flip(t *testing.T, data, text string) string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(embed.StoreFolder(data), "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tables {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(content, []byte(text[:60])); at >= 0 {
			content[at+20] ^= 1
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Base(path)
		}
	}
	t.Fatalf("no table of %q has the text", tables)
	return ""
}

// A read that meets damage is remembered: the server says so until somebody has looked, and so does the doctor.
func TestFault49_damage_is_named_by_the_server_and_the_doctor(t *testing.T) {
	data, text, _ := filled(t)
	if f := diagnosed(t, 0, "--data", data); f["damage"].Status != findOK || f["blobs"].Status != findOK || !strings.HasPrefix(f["blobs"].Found, "1 file") {
		t.Fatalf("before the damage: %+v, %+v", f["damage"], f["blobs"])
	}
	table := flip(t, data, text)
	t.Run("serve", func(t *testing.T) {
		address := dev(t, "--data", data)
		for range 2 {
			status, body := fetched(t, address+"/v1/jobs/j150")
			if status != http.StatusInternalServerError || !strings.Contains(body, `"code":"store_damaged"`) || !strings.Contains(body, "belfry doctor") ||
				strings.Contains(body, table) || strings.Contains(body, "default") {
				t.Errorf("what is damaged: %d %s", status, body)
			}
			if status, body := fetched(t, address+"/v1/jobs/j000"); status != http.StatusOK {
				t.Errorf("what is not: %d %s", status, body)
			}
			status, body = fetched(t, address+"/readyz")
			if status != http.StatusServiceUnavailable || !strings.Contains(body, "store/"+table) || !strings.Contains(body, "belfry restore") || strings.Contains(body, data) {
				t.Errorf("/readyz: %d %s", status, body)
			}
		}
		if _, body := fetched(t, address+"/metrics"); !strings.Contains(body, `belfry_check_state{check="data"} 2`) {
			t.Error("/metrics does not tell of it")
		}
		got := to(t, address)(1, "", "job", "list")
		if strings.Contains(got.out, "j299") {
			t.Errorf("a list goes on behind the damage:\n%s", got.out)
		}
		if f := diagnosed(t, 1, "--address", address)["data"]; f.Status != findProblem || !strings.Contains(f.Found, table) {
			t.Errorf("the doctor of the server: %+v", f)
		}
		if f := diagnosed(t, 1, "--data", data); f["damage"].Status != findProblem || !strings.HasPrefix(f["damage"].Found, "store/"+table+": ") || f["store"].Status != findAttention {
			t.Errorf("the doctor of its folder meanwhile: %+v, %+v", f["damage"], f["store"])
		}
	})
	f := diagnosed(t, 1, "--data", data)["damage"]
	if !strings.HasPrefix(f.Found, "store/"+table+": ") || !strings.Contains(f.Why, " records cannot be read, those behind ") || !strings.Contains(f.Why, "job#default") {
		t.Errorf("the doctor of the folder: %+v", f)
	}
}

// A payload, result or log that is not what was put costs one run; the folder's disk is to be looked at all the same.
func TestFault49_a_damaged_blob_is_named(t *testing.T) {
	data, _, run := filled(t)
	files := blobFiles(t, data)
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(files[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := diagnosed(t, 1, "--data", data)["blobs"]; !strings.Contains(f.Found, run) || !strings.Contains(f.Found, "payload is damaged") {
		t.Errorf("the doctor: %+v", f)
	}
	t.Run("serve", func(t *testing.T) {
		address := dev(t, "--data", data)
		if status, body := fetched(t, address+"/readyz"); status != http.StatusOK {
			t.Errorf("before anybody reads it: %d %s", status, body)
		}
		to(t, address)(0, "", "run", "retry", run)
		eventually(t, "it is known", func() (bool, string) {
			status, body := fetched(t, address+"/readyz")
			return status == http.StatusServiceUnavailable && strings.Contains(body, "blobs (1 file)") && !strings.Contains(body, run), body
		})
	})
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if f := diagnosed(t, 1, "--data", data)["blobs"]; !strings.Contains(f.Found, "payload is gone") {
		t.Errorf("the doctor, of a file that is gone: %+v", f)
	}
}

func blobFiles(t *testing.T, data string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(embed.BlobFolder(data), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v: want one blob", files, err)
	}
	return files
}

// Whatever file of the store is damaged, the doctor ends with 1 and names it, or nothing in it was of use.
func TestFault49_the_doctor_names_any_damaged_file(t *testing.T) {
	data, _, _ := filled(t)
	names, err := os.ReadDir(embed.StoreFolder(data))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, entry := range names {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() == 0 {
			continue
		}
		harmed := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(harmed, os.DirFS(data)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(harmed, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(embed.StoreFolder(harmed), entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 0x10
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		got := belfry(t, "", "doctor", "-o", "json", "--data", harmed)
		found := decode[[]finding](t, got.out)
		says := slices.ContainsFunc(found, func(f finding) bool {
			return f.Status == findProblem && strings.Contains(f.Found, strings.TrimPrefix(entry.Name(), "synced."))
		})
		must := strings.HasSuffix(entry.Name(), ".sst") || strings.HasPrefix(entry.Name(), "MANIFEST-") || entry.Name() == "BELFRY-STORE"
		switch {
		case got.code == 0 && must, got.code == 1 && must && !says, got.code > 1:
			t.Errorf("%s: code %d\n%s", entry.Name(), got.code, got.out)
		case says:
			named++
		}
	}
	if named < 2 {
		t.Errorf("only %d files were named", named)
	}
}

// contents are all files of a folder, with what is in them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if all[path] = entry.Type().String(); entry.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			all[path] += string(raw)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A doctor changes no file: neither of a folder that is well nor of one that lost a file, and be it an empty one. It leaves none behind either:
// no lock where there was none.
func TestFault49_the_doctor_changes_nothing(t *testing.T) {
	data, _, _ := filled(t)
	for name, c := range map[string]struct {
		lost string
		code int
	}{
		"well":                {"", 0},
		"without blobs":       {"blobs", 1},
		"without its list":    {"store/MANIFEST-*", 1},
		"without its marker":  {"store/marker.manifest.*", 1},
		"without a table":     {"store/*.sst", 1},
		"without its format":  {"store/BELFRY-STORE", 1},
		"without a lock file": {"store/LOCK", 0},
	} {
		t.Run(name, func(t *testing.T) {
			harmed := filepath.Join(t.TempDir(), "data")
			if err := errors.Join(os.CopyFS(harmed, os.DirFS(data)), os.Chmod(harmed, 0o700), os.Chmod(filepath.Join(harmed, "secrets.key"), 0o600)); err != nil {
				t.Fatal(err)
			}
			lost, err := filepath.Glob(filepath.Join(harmed, c.lost))
			if err != nil || len(lost) == 0 {
				t.Fatal(lost, err)
			}
			for _, path := range lost {
				if c.lost != "" {
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, locked := range []bool{true, false} {
				if !locked {
					if err := os.RemoveAll(filepath.Join(harmed, "store", "LOCK")); err != nil {
						t.Fatal(err)
					}
				}
				stays := contents(t, harmed)
				found := diagnosed(t, c.code, "--data", harmed)
				if now := contents(t, harmed); !maps.Equal(now, stays) {
					t.Errorf("it left %q\nof %q, or changed them", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(stays)))
				}
				if c.code == 0 && found["store"].Status != findOK {
					t.Errorf("%+v", found["store"])
				}
			}
		})
	}
}
