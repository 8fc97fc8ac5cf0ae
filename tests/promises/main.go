// Command promises shows what holds each of Belfry's promises and each fault it must survive: the tests that carry its name.
//
// It reads claims.txt, finds the tests of the module it is started in by parsing, prints both side by side, and fails on a
// claim that no test holds unless later.txt names the work that owns it; on a line of later.txt whose claim has a test by
// now; and on a test that names a claim that does not exist.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var (
	//go:embed claims.txt
	claimsText string
	//go:embed later.txt
	laterText string
)

func main() {
	if err := run(os.DirFS("."), claimsText, laterText, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tree fs.FS, claimsText, laterText string, out io.Writer) error {
	claims, err := parseClaims(claimsText)
	if err != nil {
		return err
	}
	later, err := parseLater(laterText)
	if err != nil {
		return err
	}
	tests, err := findTests(tree)
	if err != nil {
		return err
	}
	return report(out, claims, later, tests)
}
