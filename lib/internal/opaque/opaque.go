// Package opaque writes bytes as the texts that Belfry gives out and takes back: cursors and tickets. Whoever has one hands it on as it is.
package opaque

import "encoding/base64"

// Text writes bytes as letters, digits, "-" and "_".
func Text(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// Bytes gives the bytes of a text that Text wrote; false for every other one, also those that a decoder of base64 takes for the same: with line
// breaks anywhere in them, or other bits behind the last byte.
func Bytes(text string) (raw []byte, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return raw, err == nil && Text(raw) == text
}
