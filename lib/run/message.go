package run

import (
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/record"
)

// Message is what travels through the queue: a hint that a run may be started, with enough in it to start the run by one
// conditional write and no read, should nothing have happened since.
type Message struct {
	Run  Run   // as it was written, ID, tenant and version included
	Sent int64 // Unix ms

	// Returns is how often a queue has given this run's message up, for having handed it out too often, since anything happened to
	// the run.
	Returns int
}

type wireMessage struct {
	Tenant  string `cbor:"1,keyasint"`
	ID      string `cbor:"2,keyasint"`
	Version uint64 `cbor:"3,keyasint"`
	Run     Run    `cbor:"4,keyasint"`
	Sent    int64  `cbor:"5,keyasint"`
	Returns int    `cbor:"6,keyasint,omitempty"`
}

// Encode gives the body of the message.
func (m Message) Encode() ([]byte, error) {
	return record.Encode(wireMessage{Tenant: m.Run.Tenant, ID: m.Run.ID.String(), Version: m.Run.Version, Run: m.Run, Sent: m.Sent, Returns: m.Returns})
}

// DecodeMessage reads a body.
func DecodeMessage(body []byte) (Message, error) {
	var w wireMessage
	if err := record.Decode(body, &w); err != nil {
		return Message{}, fmt.Errorf("message: %w", err)
	}
	id, err := ParseID(w.ID)
	if err != nil {
		return Message{}, fmt.Errorf("message: %w: %w", record.ErrBroken, err)
	}
	m := Message{Run: w.Run, Sent: w.Sent, Returns: w.Returns}
	m.Run.ID, m.Run.Tenant, m.Run.Version = id, w.Tenant, w.Version
	return m, nil
}
