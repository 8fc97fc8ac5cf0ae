package run

import (
	"fmt"
	"math"

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
	wire := wireMessage{Tenant: m.Run.Tenant, ID: m.Run.ID.String(), Version: m.Run.Version, Run: m.Run, Sent: m.Sent, Returns: m.Returns}
	w := record.Write(20 + len(wire.Tenant) + len(wire.ID) + wire.Run.Size())
	wire.writeFields(&w)
	return w.Stored(), nil
}

// DecodeMessage reads a body.
func DecodeMessage(body []byte) (Message, error) {
	w, err := readMessage(body)
	if err != nil {
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

func readMessage(body []byte) (wireMessage, error) {
	var w wireMessage
	s := record.Scan(body)
	if w.readFields(&s); s.Whole() {
		return w, nil
	}
	var other wireMessage
	err := record.Decode(body, &other)
	return other, err
}

func (m *wireMessage) writeFields(w *record.Writer) {
	w.AlwaysText(1, m.Tenant)
	w.AlwaysText(2, m.ID)
	w.AlwaysUint(3, m.Version)
	outer := w.Open(4)
	m.Run.WriteFields(w)
	w.Close(outer)
	w.Always(5, m.Sent)
	w.Int(6, int64(m.Returns))
}

func (m *wireMessage) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			m.Tenant = string(s.Text())
		case 2:
			m.ID = string(s.Text())
		case 3:
			m.Version = s.Uint(math.MaxUint64)
		case 4:
			m.Run.ReadFields(s)
		case 5:
			m.Sent = s.Int()
		case 6:
			m.Returns = int(s.Int())
		default:
			s.Fail()
		}
	}
}
