package lease

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
)

// ticket is what a worker elsewhere carries for this process: the message of a run that it was offered, or has started.
type ticket struct {
	Queue    string `cbor:"1,keyasint"`
	Tenant   string `cbor:"2,keyasint"`
	Receipt  string `cbor:"3,keyasint"`
	Receives int    `cbor:"4,keyasint"`
	Body     []byte `cbor:"5,keyasint,omitempty"` // until the start

	Priority queue.Priority `cbor:"6,keyasint,omitempty"` // by which an engine finds the message
}

const (
	sealKeyBytes = 32
	sealBytes    = 16 // of the tag in front: nobody guesses one in the life of a process
)

// seal writes a ticket so that only this key's holder can have made it. What is in it is the tenant's own.
func (r *Remote) seal(t ticket) string {
	text, err := record.Encode(t)
	if err != nil {
		r.Log.Error("a ticket was not written", "error", err) // it opens as none: the message comes again by itself
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(r.tag(text), text...))
}

func (r *Remote) tag(text []byte) []byte {
	mac := hmac.New(sha256.New, r.Key)
	mac.Write(text)
	return mac.Sum(nil)[:sealBytes]
}

// open reads a tenant's ticket; false for what this key has not sealed, or sealed for another tenant.
func (r *Remote) open(sealed, tenant string) (ticket, bool) {
	text, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(text) < sealBytes || !hmac.Equal(text[:sealBytes], r.tag(text[sealBytes:])) {
		return ticket{}, false
	}
	var t ticket
	if err := record.Decode(text[sealBytes:], &t); err != nil || t.Tenant != tenant {
		return ticket{}, false
	}
	return t, true
}
