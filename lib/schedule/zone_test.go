package schedule

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A new zoneinfo.gz must come with its new name: this is the hash of the release that TZDataVersion gives.
func TestTZDataVersion_names_the_embedded_file(t *testing.T) {
	const release, hash = "2025c", "ccf266037385a284e1a5e32ef004de1790f7c0e0dd0b84ace77eb0e2fe914cb9"
	if got := fmt.Sprintf("%x", sha256.Sum256(zoneinfo)); TZDataVersion() != release || got != hash {
		t.Errorf("version %s with hash %s, want %s with %s", TZDataVersion(), got, release, hash)
	}
}

// A file that was made wrong is refused as a whole, and none of its zones is read from where another's data are.
func TestA_database_that_was_packed_wrong_is_refused(t *testing.T) {
	packed := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		fmt.Fprint(w, text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	files, err := unpackZones(packed("A/B 0 2\nC 1 3\nD 0 2\n\nwxyz"))
	if err != nil || len(files) != 3 || string(files["A/B"]) != "wx" || string(files["C"]) != "xyz" || string(files["D"]) != "wx" {
		t.Errorf("got %q, %v", files, err)
	}
	for _, text := range []string{"A\n\nwxyz", "A 0\n\nwxyz", "A 0 5\n\nwxyz", "A 4 1\n\nwxyz", "A -1 2\n\nwxyz", "A 2 -1\n\nwxyz", "A 0 4\nwxyz"} {
		if files, err := unpackZones(packed(text)); err == nil {
			t.Errorf("%q: got %q, %v", text, files, err)
		}
	}
	if _, err := unpackZones(zoneinfo[:len(zoneinfo)/2]); err == nil {
		t.Error("half of a database is taken")
	}
}

func TestLoadZone_takes_names_of_the_database_alone(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "EST5EDT"} {
		loc, err := LoadZone(name)
		if err != nil || loc.String() != name {
			t.Errorf("%s: %v, %v", name, loc, err)
		}
	}
	for name, want := range map[string]string{
		"Local":              `timezone: got "Local", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"europe/berlin":      `timezone: got "europe/berlin", want "Europe/Berlin", in these capitals`,
		"":                   `timezone: got "", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"Europe/":            `timezone: got "Europe/", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"../Europe/Berlin":   `timezone: got "../Europe/Berlin", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"/etc/localtime":     `timezone: got "/etc/localtime", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"Europe/../UTC":      `timezone: got "Europe/../UTC", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"Factory":            `timezone: got "Factory", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
		"Europe/Berlin\x00x": `timezone: got "Europe/Berlin\x00x", want an IANA time zone name such as "Europe/Berlin" or "UTC"`,
	} {
		if _, err := LoadZone(name); err == nil || err.Error() != want {
			t.Errorf("%q: got  %v\n\twant %s", name, err, want)
		}
	}
}

// The host's own zone files must not decide when a job fires. The standard library reads ZONEINFO once in a process, so
// that a second process with a false Berlin in it tells whether anything asks for the host's.
func TestLoadZone_ignores_the_host(t *testing.T) {
	const falsified = "BELFRY_TEST_FALSE_BERLIN"
	if os.Getenv(falsified) == "" {
		tokyo, err := zoneData("Asia/Tokyo")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "Europe"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Europe", "Berlin"), tokyo, 0o644); err != nil {
			t.Fatal(err)
		}
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		again.Env = append(os.Environ(), "ZONEINFO="+dir, "TZ=Europe/Berlin", falsified+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("with a false Berlin on the host: %v\n%s", err, out)
		}
		return
	}
	host, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	if noon.In(host).Hour() != 19 {
		t.Fatalf("the host's Berlin was not falsified: %v", noon.In(host))
	}
	next, _ := compile(t, Spec{Cron: "0 12 * * *", Timezone: "Europe/Berlin"}).Next(noon.Add(-time.Hour))
	if !next.Equal(noon) {
		t.Errorf("noon in Berlin is %v, want %v", next, noon)
	}
	loc, err := LoadZone("Europe/Berlin")
	if err != nil || noon.In(loc).Hour() != 12 {
		t.Errorf("LoadZone gives %v, %v", noon.In(loc), err)
	}
}

// Our table and rule against the standard library: the offset on either side of every change, and every few days.
func TestFault15_offsets_agree_with_the_standard_library(t *testing.T) {
	everyZone(t, func(name string, loc *time.Location) {
		z, err := zoneOf(name)
		if err != nil {
			t.Fatal(err)
		}
		check := func(u int64) {
			s := z.at(u)
			_, want := time.Unix(u, 0).In(loc).Zone()
			if int(s.offset) != want || u < s.start || u >= s.end {
				t.Fatalf("%s at %v: offset %d in [%d, %d), want %d", name, time.Unix(u, 0).UTC(), s.offset, s.start, s.end, want)
			}
		}
		for _, u := range clockChanges(loc) {
			check(max(u-1, 0))
			check(u)
		}
		for u := int64(0); u < 5e9; u += 11*daySeconds + 1237 {
			check(u)
		}
		for u := int64(5e9); u < endOfTimeSec; u += 401*daySeconds + 3331 {
			check(u)
		}
	})
}

// Spans must join without a hole, and a span's fresh must be exactly where its wall stops to repeat the one before: the
// engine looks no further back.
func TestFault15_spans_join_and_repeat_only_their_neighbour(t *testing.T) {
	everyZone(t, func(name string, _ *time.Location) {
		z, err := zoneOf(name)
		if err != nil {
			t.Fatal(err)
		}
		previous := z.at(0)
		for u := previous.end; u < endOfTimeSec && u < 7e9; {
			s := z.at(u)
			if s.start != previous.end || s.before != previous.offset || s.offset == s.before {
				t.Fatalf("%s: span %+v follows %+v", name, s, previous)
			}
			begin, shownUpTo := s.start+int64(s.offset), s.start+int64(s.before)
			if begin < shownUpTo && (s.fresh != shownUpTo || previous.start > 0 && previous.start+int64(previous.offset) > begin) {
				t.Fatalf("%s: span %+v repeats more than %+v", name, s, previous)
			}
			if begin >= shownUpTo && s.fresh > begin {
				t.Fatalf("%s: span %+v calls new walls repeated", name, s)
			}
			previous, u = s, s.end
		}
	})
}
