package run

import "github.com/belfry-scheduler/belfry/lib/record"

// WireMessage is a message as it is written.
type WireMessage = wireMessage

// WriteMessage and ReadMessage write and read it by hand.
func WriteMessage(w *WireMessage, f record.Fields) record.Fields { return w.writeFields(f) }
func ReadMessage(w *WireMessage, s *record.Scanner)              { w.readFields(s) }
