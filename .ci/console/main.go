// Command console bundles the pages of the console, lib/console/web, into lib/console/dist, which is committed: who builds Belfry
// needs only Go, and who changes the pages too. The same source makes the same bytes on every host.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "../..", "`DIR` of the clone")
	flag.Parse()
	files, err := bundle(*root)
	if err == nil {
		err = write(filepath.Join(*root, "lib/console/dist"), files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, name := range names(files) {
		fmt.Printf("%-12s %7d bytes\n", name, len(files[name]))
	}
}

// write leaves exactly the files in a folder.
func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
