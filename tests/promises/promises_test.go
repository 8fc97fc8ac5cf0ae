package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

const twoClaims = "P1 durable\nFault2 late write\n"

// tree is a module with one suite, one file of tests and scripts; the numbers in it are assembled, so that this file holds
// nothing itself.
func tree(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "PROMISE", "P1"), "FAULT", "Fault02")
		fsys[strings.ReplaceAll(name, "FAULT", "Fault02")] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const header = "import \"testing\"\n"

func TestFindsWhatHolds(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"functions of their own": {
			"lib/a/a_test.go": "package a\n" + header + "func TestPROMISE_x(t *testing.T) {}\nfunc FuzzFAULT_x(f *testing.F) {}"},
		"one function for both": {
			"lib/a/a_test.go": "package a\n" + header + "func TestPROMISE_FAULT_x(t *testing.T) {}"},
		"the claim in the middle and at the end": {
			"lib/a/a_test.go": "package a\n" + header + "func TestStore_PROMISE(t *testing.T) {}\nfunc TestStore_FAULT_x(t *testing.T) {}"},
		"subtests of a suite": {
			"lib/s/suite.go": "package s\n" + header + `func Run(t *testing.T) { t.Run("PROMISE_x", nil); t.Run("FAULT x", nil) }`},
		"rows and fields of a table": {
			"lib/s/suite.go": "package s\n" + header + `var rows = []struct{ name string }{{"PROMISE_x"}, {name: "FAULT_x"}}`},
		"keys of a map": {
			"lib/s/suite.go": "package s\n" + header + `var all = map[string]func(){"PROMISE_x": nil, "FAULT_x": nil}`},
		"a script beside a test that reads testdata": {
			"lib/a/a_test.go":                 "package a\n" + header + `func TestPROMISE(t *testing.T) { read("testdata") }`,
			"lib/a/testdata/deep/FAULT_x.txt": ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := run(tree(files), twoClaims, "", &out); err != nil {
				t.Errorf("%v\n%s", err, &out)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	both := "package a\n" + header + "func TestPROMISE_FAULT_x(t *testing.T) {}"
	for name, row := range map[string]struct {
		files  map[string]string
		claims string
		later  string
		want   string
	}{
		"a claim without a test": {
			files: map[string]string{"lib/a/a_test.go": "package a\n" + header + "func TestPROMISE_x(t *testing.T) {}"},
			want:  "Fault2: no test"},
		"a claim left to later work that has a test": {
			files: map[string]string{"lib/a/a_test.go": both},
			later: "P1 speed: too early",
			want:  "P1: later.txt leaves it to speed"},
		"a later line of no claim": {
			files: map[string]string{"lib/a/a_test.go": both},
			later: "P9 speed: too early",
			want:  "later.txt names P9"},
		"a test of no claim": {
			files:  map[string]string{"lib/a/a_test.go": both},
			claims: "P1 durable",
			want:   "TestP1_Fault02_x names Fault2"},
		"a name that only looks alike": {
			files: map[string]string{"lib/a/a_test.go": "package a\n" + header + "func TestP10_FAULT(t *testing.T) {}\nfunc TestPROMISEx(t *testing.T) {}"},
			want:  "P1: no test"},
		"a test behind a tag": {
			files: map[string]string{"lib/a/a_test.go": "//go:build never\n\n" + both},
			want:  "P1: no test"},
		"a test for another system": {
			files: map[string]string{"lib/a/a_windows_test.go": both},
			want:  "P1: no test"},
		"a test in a hidden folder or another module": {
			files: map[string]string{".ci/a_test.go": both, "lib/b/go.mod": "module b", "lib/b/b_test.go": both},
			want:  "P1: no test"},
		"a function outside of a file of tests": {
			files: map[string]string{"lib/a/a.go": both},
			want:  "P1: no test"},
		"a literal that names no test": {
			files: map[string]string{"lib/a/a_test.go": "package a\n" + header + `func TestFAULT(t *testing.T) { t.Fatal("PROMISE broken") }`},
			want:  "P1: no test"},
		"a row that is no name": {
			files: map[string]string{"lib/a/a_test.go": "package a\n" + header + `var rows = []string{"PROMISE", "holds PROMISE_x", "FAULT_x"}`},
			want:  "P1: no test"},
		"a script that nothing runs": {
			files: map[string]string{"lib/a/a_test.go": "package a\n" + header + `func TestPROMISE(t *testing.T) {}`, "lib/a/testdata/FAULT_x.txt": ""},
			want:  "Fault2: no test"},
		"a later line without its reason": {
			files: map[string]string{"lib/a/a_test.go": both},
			later: "Fault2 speed",
			want:  "want the claim"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := row.claims
			if claims == "" {
				claims = twoClaims
			}
			var out strings.Builder
			err := run(tree(row.files), claims, row.later, &out)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q in it\n%s", err, row.want, &out)
			}
		})
	}
}

func TestNamesEveryClaimOfTheDesign(t *testing.T) {
	claims, err := parseClaims(claimsText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseLater(laterText); err != nil {
		t.Fatal(err)
	}
	if len(claims) != 12+54 || claims[11].name != "P12" || claims[65].name != "Fault54" {
		t.Errorf("%d claims, want P1 to P12, then Fault1 to Fault54", len(claims))
	}
}
