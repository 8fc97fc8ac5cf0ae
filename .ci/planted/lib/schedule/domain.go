// Package schedule is a domain package in which every architecture rule is broken once.
package schedule

import (
	_ "crypto/rand"  // want depguard "take a source"
	_ "database/sql" // want depguard "adapter"
	"errors"
	"fmt"
	"log"            // want depguard "log/slog"
	_ "math/rand"    // want depguard "take a source"
	_ "math/rand/v2" // want depguard "take a source"
	"net/http"
	"os"
	clock "time"

	_ "example.org/unheard-of"           // want depguard "not allowed"
	_ "github.com/aws/aws-sdk-go-v2"     // want depguard "AWS is spoken"
	_ "github.com/cockroachdb/pebble/v2" // want depguard "not allowed"
)

var errBroken = errors.New("broken")

// Break is called by nobody.
func Break(err error) clock.Time {
	clock.Sleep(clock.Second)                               // want forbidigo "the signal you wait for"
	started := clock.Now()                                  // want forbidigo "take now"
	fmt.Println(clock.Since(started), clock.Until(started)) // want forbidigo "take now" forbidigo "handed in"
	if os.Getenv("BELFRY_STORE") == "" {                    // want forbidigo "comes in as fields"
		log.Fatal("gone") // want forbidigo "only main"
	}
	if v, ok := os.LookupEnv("BELFRY_STORE"); ok || len(os.Environ()) > 0 { // want forbidigo "comes in as fields"
		os.Exit(len(v)) // want forbidigo "only main"
	}
	_ = http.ListenAndServe("127.0.0.1:0", nil) // want forbidigo "time limits"
	os.Mkdir("x", 0)                            // want errcheck "not checked"
	if err == errBroken {                       // want errorlint "wrapped"
		return started
	}
	now := clock.Now //nolint // want nolintlint "specific"
	return now()
}
