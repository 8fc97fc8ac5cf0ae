package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// keyBytes is the length of a key of AES-256.
const keyBytes = 32

// maxKeys bounds a ring. Nobody needs more than two while a rotation is under way.
const maxKeys = 16

// Ring holds keys, the one that seals first. It never changes.
type Ring struct{ keys []key }

type key struct {
	id   string // of the first bytes of its hash: tells keys apart and nothing about them
	aead cipher.AEAD
}

// NewKey makes the text of a key: 256 random bits in base64.
func NewKey(random io.Reader) (string, error) {
	raw := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// ParseRing reads keys, one a line, the newest first; empty lines and those that begin with # are skipped. Errors name
// lines, never what stands in them.
func ParseRing(text string) (*Ring, error) {
	ring := &Ring{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != keyBytes {
			return nil, fmt.Errorf("line %d is no key: want the base64 form of %d bytes, as \"openssl rand -base64 32\" makes", i+1, keyBytes)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		if ring.keys = append(ring.keys, key{keyID(raw), aead}); len(ring.keys) > maxKeys {
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
	}
	if len(ring.keys) == 0 {
		return nil, fmt.Errorf("no key: want a line with the base64 form of %d bytes, as \"openssl rand -base64 32\" makes", keyBytes)
	}
	return ring, nil
}

func keyID(raw []byte) string {
	hash := sha256.Sum256(append([]byte("belfry secret key\x00"), raw...))
	return hex.EncodeToString(hash[:6])
}

// current is the key that seals, false where there is none.
func (r *Ring) current() (key, bool) {
	if r == nil {
		return key{}, false
	}
	return r.keys[0], true
}

func (r *Ring) find(id string) (key, bool) {
	if r == nil {
		return key{}, false
	}
	for _, k := range r.keys {
		if k.id == id {
			return k, true
		}
	}
	return key{}, false
}
