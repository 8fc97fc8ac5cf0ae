// Command belfry is the scheduler in one binary: the server and the operator's commands.
package main

import (
	"context"
	"os"
)

// version is set when the binary is built; without it, what Go noted about the build is told.
var version string

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
