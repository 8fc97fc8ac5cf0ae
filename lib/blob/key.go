package blob

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Kind is what a blob holds. It is a part of its key.
type Kind string

// The kinds.
const (
	Payload Kind = "payload"
	Result  Kind = "result"
	Log     Kind = "log"
	Message Kind = "message" // of a queue, that nobody could read
)

// NoTenant owns what cannot be told whose it is. No tenant has this name.
const NoTenant = "_"

// Ref says what a blob is of, so that its key can be made.
type Ref struct {
	Tenant  string
	Kind    Kind
	ID      string    // unique within tenant, kind and day of expiry: 1 to 192 of letters, digits and "._~-", no "." first
	Expires time.Time // DeleteExpired takes it on the next day at the earliest; zero: never
}

const (
	root     = "b/" // of all keys, so that a bucket can be shared with something else
	never    = "never"
	dayForm  = "2006-01-02"
	sumBytes = 16 // of the SHA-256, enough to tell a torn, flipped or exchanged blob
	sumChars = 22 // sumBytes in base64 without padding

	live = "~live" // ends the names of what PutLive writes, and no other's
)

var (
	tenants = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,127}|` + NoTenant + `)$`)
	ids     = regexp.MustCompile(`^[A-Za-z0-9~_-][A-Za-z0-9._~-]{0,191}$`)
	names   = regexp.MustCompile(`^b/([0-9]{4}-[0-9]{2}-[0-9]{2}|never)/([^/]+)/(payload|result|log|message)/([0-9a-f]{2})/([^/]+)$`)
)

// name is where the blob lies in the bucket:
//
//	b/2026-11-21/acme/payload/3f/report~0mi8xk2p0
//
// First the day of expiry, so that what has expired is at the beginning of every listing; two digits of a hash before the
// ID, because a folder of a million files lists slowly.
func (r Ref) name() (string, error) {
	switch {
	case !tenants.MatchString(r.Tenant):
		return "", invalid.Field("tenant", r.Tenant, "1 to 128 letters, digits and \"._-\", the first a letter or digit")
	case r.Kind != Payload && r.Kind != Result && r.Kind != Log && r.Kind != Message:
		return "", invalid.Field("kind", string(r.Kind), `"payload", "result", "log" or "message"`)
	case !ids.MatchString(r.ID), strings.HasSuffix(r.ID, live):
		return "", invalid.Field("id", r.ID, "1 to 192 letters, digits and \"._~-\", the first none of \".\", without \""+live+"\" at the end")
	}
	day := never
	if !r.Expires.IsZero() {
		utc := r.Expires.UTC()
		if utc.Year() < 0 || utc.Year() > 9999 {
			return "", invalid.Field("expires", utc.Format(time.RFC3339), "a time before the year 10000")
		}
		day = utc.Format(dayForm)
	}
	shard := sha256.Sum256([]byte(r.ID))
	return fmt.Sprintf("%s%s/%s/%s/%02x/%s", root, day, r.Tenant, r.Kind, shard[0], r.ID), nil
}

// keyOf joins a name and the hash of what lies there: a key tells where to read, and whether it is what was written.
func keyOf(name string, data []byte) string { return name + "#" + SumOf(data) }

// Sum is the hash of what a key is of, as the key has it: base64 (RFC 4648 §5, without padding) of the first 16 bytes of its SHA-256. "" is for what is no key.
func Sum(key string) string {
	_, sum, _ := strings.Cut(key, "#")
	return sum
}

// SumOf is the Sum of a key of this content.
func SumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:sumBytes])
}

// splitKey takes a key apart, if it is one of the tenant.
func splitKey(tenant, key string) (name, sum string, err error) {
	name, sum, _ = strings.Cut(key, "#")
	parts := names.FindStringSubmatch(name)
	if parts == nil || len(sum) != sumChars || !tenants.MatchString(parts[2]) || !ids.MatchString(parts[5]) {
		return "", "", invalid.Field("key", key, "a key that Put gave")
	}
	if parts[2] != tenant {
		// What another tenant holds is not even confirmed to be there (P12).
		return "", "", ErrNotFound
	}
	return name, sum, nil
}

// Expired tells whether the blob of a key may have been deleted by now, because its day of expiry is over.
func Expired(key string, now time.Time) bool {
	name, _, _ := strings.Cut(key, "#")
	return expired(name, now)
}

// expired tells whether the day that a name begins with lies before the day of now.
func expired(name string, now time.Time) bool {
	parts := names.FindStringSubmatch(name)
	return parts != nil && parts[1] != never && parts[1] < now.UTC().Format(dayForm)
}
