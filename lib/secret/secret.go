package secret

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Bounds of what the vault keeps.
const (
	MaxValue  = 32 << 10 // bytes of a secret, wherever it comes from; more than a header or a certificate needs
	MaxNumber = 1000     // secrets of a tenant
)

// What a caller decides on.
var (
	// ErrMissing says that there is no such secret.
	ErrMissing = errors.New("no such secret")
	// ErrNoKey says that this process has no key to seal or open secrets with.
	ErrNoKey = errors.New("this process has no key for secrets")
	// ErrTooMany says that the tenant has MaxNumber secrets.
	ErrTooMany = fmt.Errorf("there are %d secrets already; delete some first", MaxNumber)
)

// ValidName refuses names that no secret may have.
func ValidName(name string) error {
	if !target.ValidSecretName(name) {
		return invalid.Field("name", name, "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit")
	}
	return nil
}

// ValidValue refuses what no secret may be. Its error never shows the value.
func ValidValue(value string) error {
	switch {
	case value == "":
		return invalid.Missing("value", "a secret that is not empty")
	case len(value) > MaxValue:
		return invalid.Field("value", fmt.Sprintf("%d bytes", len(value)), fmt.Sprintf("at most %d", MaxValue))
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return invalid.Missing("value", "text in UTF-8 without NUL; encode bytes, as in base64")
	}
	return nil
}
