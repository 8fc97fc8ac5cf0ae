// Package pebble is an adapter: it may import its driver, and no more than that.
package pebble

import (
	_ "crypto/rand" // want depguard "take a source"
	"os"
	"time"

	_ "github.com/cockroachdb/pebble/v2"
)

// Open reads what it must be handed.
func Open() (string, time.Time) {
	return os.Getenv("BELFRY_STORE"), time.Now() // want forbidigo "comes in as fields" forbidigo "take now"
}
