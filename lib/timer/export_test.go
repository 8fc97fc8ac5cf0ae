package timer

import "github.com/belfry-scheduler/belfry/lib/record"

// Body is a timer's record.
type Body = body

// WriteBody and ReadBody write and read it by hand.
func WriteBody(b *Body, w *record.Writer) { b.writeFields(w) }
func ReadBody(b *Body, s *record.Scanner) { b.readFields(s) }
