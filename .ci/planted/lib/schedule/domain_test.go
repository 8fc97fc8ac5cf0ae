package schedule

import (
	_ "crypto/rand"
	_ "math/rand/v2"
	"os"
	"testing"
	"time"
)

// What the rules leave to tests.
func TestAllowed(t *testing.T) {
	if time.Now().IsZero() || os.Getenv("PATH") == "" {
		t.Fatal(Break(nil))
	}
}
