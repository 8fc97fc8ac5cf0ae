package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Token is a credential as it is kept and shown: all but its secret.
type Token struct {
	ID      string // 16 hex digits; no secret
	Tenant  string // whose jobs it is for
	Parent  string // ID of the token of which it is a session, "" for a token of its own
	Name    string // what it is for, in its owner's words
	Scopes  []Scope
	Created time.Time
	Expires time.Time // zero: never
	Revoked time.Time // zero: not
	Used    time.Time // zero: not yet; to the hour

	hash    []byte // SHA-256 of the whole text
	version uint64 // of the stored item
}

// Ended tells why the token is no longer good at this time, "" where it is.
func (t Token) Ended(now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "was revoked at " + t.Revoked.UTC().Format(time.RFC3339)
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return "expired at " + t.Expires.UTC().Format(time.RFC3339)
	}
	return ""
}

// holds tells whether the text is this token's. It takes the same time however much of it is right.
func (t Token) holds(text string) bool {
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], t.hash) == 1
}

// The text of a token is bel_ID_SECRET. The beginning lets scanners find one that was left in a file, the ID finds its record,
// and the secret is 256 random bits in base 62 with a checksum over all that stands before it: a mistyped token is known as
// one without a look into the store.
const (
	prefix        = "bel_"
	idBytes       = 8
	secretBytes   = 32
	secretDigits  = 43 // of base 62, for 256 bits
	checkDigits   = 6  // of base 62, for 32 bits
	textBytes     = len(prefix) + 2*idBytes + 1 + secretDigits + checkDigits
	digits        = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idPattern     = "^[0-9a-f]{16}$"
	tenantPattern = "^[a-z0-9][a-z0-9._-]{0,62}$"
	namePattern   = `^[^\x00-\x1f\x7f]{0,100}$`
)

var (
	validID     = regexp.MustCompile(idPattern)
	validTenant = regexp.MustCompile(tenantPattern)
	validName   = regexp.MustCompile(namePattern)
)

// ErrNoToken says that a text is no token: mistyped, cut off, or something else altogether.
var ErrNoToken = errors.New("not a token: want bel_ID_SECRET, as belfry token create printed it")

// draw makes the text of a new token, and its ID.
func draw(random io.Reader) (id, text string, err error) {
	raw := make([]byte, idBytes+secretBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", "", fmt.Errorf("draw a token: %w", err)
	}
	id = hex.EncodeToString(raw[:idBytes])
	text = prefix + id + "_" + base62(new(big.Int).SetBytes(raw[idBytes:]), secretDigits)
	return id, text + checksum(text), nil
}

// parse gives the ID of a text that has the form and the checksum of a token.
func parse(text string) (id string, err error) {
	if len(text) != textBytes || !strings.HasPrefix(text, prefix) {
		return "", ErrNoToken
	}
	id = text[len(prefix) : len(prefix)+2*idBytes]
	body := text[:textBytes-checkDigits]
	if !validID.MatchString(id) || text[len(prefix)+2*idBytes] != '_' || text[textBytes-checkDigits:] != checksum(body) {
		return "", ErrNoToken
	}
	return id, nil
}

// IDOf is the ID in the text of a token, "" in any other text. It says nothing of whether there is such a token.
func IDOf(text string) string {
	id, _ := parse(text)
	return id
}

func checksum(text string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), checkDigits)
}

// base62 writes n with leading zeros.
func base62(n *big.Int, width int) string {
	text := make([]byte, width)
	base, digit := big.NewInt(int64(len(digits))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		text[i] = digits[digit.Int64()]
	}
	return string(text)
}

// ValidTenant tells whether a tenant may have this name. It stands in keys, where / and # have a meaning.
func ValidTenant(tenant string) error {
	if !validTenant.MatchString(tenant) {
		return invalid.Field("tenant", tenant, "1 to 63 of a-z, 0-9, dot, dash and underscore, the first a letter or digit")
	}
	return nil
}

// stored is a token's record.
type stored struct {
	Tenant  string  `cbor:"1,keyasint"`
	Name    string  `cbor:"2,keyasint"`
	Scopes  []Scope `cbor:"3,keyasint"`
	Hash    []byte  `cbor:"4,keyasint"`
	Created int64   `cbor:"5,keyasint"` // Unix ms, as all times here; 0: none
	Expires int64   `cbor:"6,keyasint"`
	Revoked int64   `cbor:"7,keyasint"`
	Used    int64   `cbor:"8,keyasint"`
	Parent  string  `cbor:"9,keyasint,omitempty"`
}

// listed stands in the list of a tenant's tokens; its key says all.
type listed struct{}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"token": stored{}, "tokens": listed{}} }

func keyOf(id string) store.Key { return store.Key{Partition: "token#" + id, Sort: "-"} }

// list holds the IDs of all tokens, by tenant. It is read when somebody lists them and when a server starts, so one
// partition carries it.
const list = "tokens"

func listKey(tenant, id string) store.Key { return store.Key{Partition: list, Sort: tenant + "/" + id} }

func (t Token) encode() ([]byte, error) {
	return record.Encode(stored{Tenant: t.Tenant, Name: t.Name, Scopes: t.Scopes, Hash: t.hash,
		Created: millis(t.Created), Expires: millis(t.Expires), Revoked: millis(t.Revoked), Used: millis(t.Used), Parent: t.Parent})
}

func decode(item store.Item) (Token, error) {
	var r stored
	if err := record.Decode(item.Value, &r); err != nil {
		return Token{}, fmt.Errorf("token %s: %w", item.Key, err)
	}
	_, id, _ := strings.Cut(item.Partition, "#")
	return Token{ID: id, Tenant: r.Tenant, Name: r.Name, Scopes: r.Scopes, Created: moment(r.Created), Expires: moment(r.Expires),
		Revoked: moment(r.Revoked), Used: moment(r.Used), Parent: r.Parent, hash: r.Hash, version: item.Version}, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
