package run

import "github.com/belfry-scheduler/belfry/lib/record"

// WireMessage is a message as it is written.
type WireMessage = wireMessage

// WriteMessage and ReadMessage write and read it by hand.
func WriteMessage(m *WireMessage, w *record.Writer) { m.writeFields(w) }
func ReadMessage(m *WireMessage, s *record.Scanner) { m.readFields(s) }
