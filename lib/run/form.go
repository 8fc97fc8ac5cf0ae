package run

import (
	"math"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
)

// A run is written and read with each of its steps, so by hand. The tags of the structs are the form, by which record.Encode and
// record.Decode write and read the same; a test sees to it that no field is forgotten here.

// Size is about how many bytes the run's record takes, and a few more.
func (r *Run) Size() int {
	size := 40 + len(r.Worker) + len(r.Reason) + len(r.Payload.Inline) + len(r.Payload.Blob) + len(r.Result.Inline) + len(r.Result.Blob) + len(r.Log) + len(r.Callback.Run) + r.Callees.size() + len(r.Unended) + len(r.Stopped) + len(r.Chose)
	if r.Started != 0 {
		size += 36 + attemptBytes*len(r.Attempts)
	}
	return size
}

func (r *Run) record() []byte {
	w := record.Write(r.Size())
	r.WriteFields(&w)
	return w.Stored()
}

// WriteFields writes the fields of the run's record.
func (r *Run) WriteFields(w *record.Writer) {
	w.Always(1, int64(r.State))
	w.Int(2, r.Generation)
	w.Int(3, int64(r.Trigger))
	w.Text(4, string(r.Priority))
	w.Uint(5, r.Epoch)
	w.Int(6, r.Created)
	w.Int(7, r.Started)
	w.Int(8, r.Ended)
	w.Int(9, int64(r.Attempt))
	w.Int(10, int64(r.Failures))
	w.Int(11, int64(r.Crashes))
	w.Uint(12, r.Fence)
	w.Text(13, r.Worker)
	w.Int(14, r.Lease)
	w.Int(15, r.NextAt)
	w.Bool(16, r.Cancel)
	w.Text(17, r.Reason)
	if !r.Payload.IsZero() {
		r.Payload.writeFields(w, 18)
	}
	if !r.Result.IsZero() {
		r.Result.writeFields(w, 19)
	}
	w.Text(20, r.Log)
	if len(r.Attempts) > 0 {
		w.Array(21, len(r.Attempts))
		for i := range r.Attempts {
			r.Attempts[i].writeFields(w)
		}
	}
	w.Int(22, r.Through)
	w.Int(23, int64(r.Count))
	w.Int(24, r.Expires)
	w.Int(25, r.Upto)
	if !r.Trace.IsZero() {
		data, _ := r.Trace.MarshalBinary() // which never fails
		w.Bytes(26, data)
	}
	w.Int(27, r.Fired)
	w.Uint(28, r.Opening)
	if !r.Why.IsZero() {
		r.Why.writeFields(w, 29)
	}
	if !r.Wait.IsZero() {
		r.Wait.writeFields(w, 30)
	}
	w.Bool(31, r.Placed)
	if !r.Discarded.IsZero() {
		r.Discarded.writeFields(w, 32)
	}
	if !r.Callback.IsZero() {
		r.Callback.writeFields(w, 33)
	}
	w.Bool(34, r.Overdue)
	if !r.Callees.IsZero() {
		r.Callees.writeFields(w, 36)
	}
	w.Bool(40, r.IgnorePause)
	w.Int(44, r.Lag)
	w.Int(48, r.StartBy)
	if len(r.Unended) > 0 {
		w.Bytes(52, r.Unended)
	}
	w.Text(53, r.Chose)
	w.Text(54, r.GateKey)
	w.Int(55, r.Released)
	w.Bool(56, r.NamedGates)
	if !r.Releasing.IsZero() {
		r.Releasing.writeFields(w, 57)
	}
	if len(r.NamedKeys) > 0 {
		w.Array(58, len(r.NamedKeys))
		for _, key := range r.NamedKeys {
			w.TextElement(key)
		}
	}
	if len(r.Stopped) > 0 {
		w.Bytes(59, r.Stopped)
	}
	w.Bool(60, r.Pauses)
	w.Int(61, r.EndBy)
	w.Bool(62, r.Keeps)
	w.Uint(64, uint64(r.Overlap))
}

func (r *Ref) writeFields(w *record.Writer, number uint8) {
	outer := w.Open(number)
	w.Bytes(1, r.Inline)
	w.Text(2, r.Blob)
	w.Text(3, r.Type)
	w.Bool(4, r.Cut)
	w.Close(outer)
}

func (y *Why) writeFields(w *record.Writer, number uint8) {
	outer := w.Open(number)
	w.Text(1, y.Code)
	w.Text(2, y.Gate)
	w.Text(3, y.Policy)
	if len(y.InTheWay) > 0 {
		w.Array(4, len(y.InTheWay))
		for _, id := range y.InTheWay {
			w.TextElement(id)
		}
	}
	w.Text(5, y.Key)
	w.Int(6, y.Since)
	w.Close(outer)
}

func (w *Wait) writeFields(to *record.Writer, number uint8) {
	outer := to.Open(number)
	to.Text(1, w.Gate)
	to.Int(2, w.Since)
	to.Int(3, w.Rank)
	to.Int(4, w.LetIn)
	to.Int(5, w.Ahead)
	to.Int(6, int64(w.Units))
	to.Text(7, w.Key)
	to.Text(8, w.Asks)
	to.Int(13, w.Until)
	to.Close(outer)
}

func (d *Discarded) writeFields(w *record.Writer, number uint8) {
	outer := w.Open(number)
	w.Int(1, d.At)
	w.Text(2, d.By)
	w.Text(3, d.Note)
	w.Close(outer)
}

func (l *Releasing) writeFields(w *record.Writer, number uint8) {
	outer := w.Open(number)
	w.Text(1, l.By)
	w.Text(2, l.Reason)
	w.Close(outer)
}

func (c *Callback) writeFields(to *record.Writer, number uint8) {
	outer := to.Open(number)
	to.Text(1, c.Event)
	to.Text(2, c.Run)
	to.Int(3, int64(c.Count))
	to.Close(outer)
}

func (c *Callees) writeFields(to *record.Writer, number uint8) {
	outer := to.Open(number)
	to.Text(1, c.Succeeded)
	to.Text(2, c.Failed)
	to.Close(outer)
}

func (a *Attempt) writeFields(w *record.Writer) {
	outer := w.Element()
	w.Always(1, int64(a.Number))
	w.Int(2, a.Started)
	w.Int(3, a.Ended)
	w.Int(4, int64(a.Outcome))
	w.Text(5, a.Error)
	w.Close(outer)
}

// ReadFields reads the fields of the run's record.
func (r *Run) ReadFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			r.State = State(s.Uint(math.MaxUint8))
		case 2:
			r.Generation = s.Int()
		case 3:
			r.Trigger = Trigger(s.Uint(math.MaxUint8))
		case 4:
			r.Priority = priority(s.Text())
		case 5:
			r.Epoch = s.Uint(math.MaxUint64)
		case 6:
			r.Created = s.Int()
		case 7:
			r.Started = s.Int()
		case 8:
			r.Ended = s.Int()
		case 9:
			r.Attempt = int(s.Int())
		case 10:
			r.Failures = int(s.Int())
		case 11:
			r.Crashes = int(s.Int())
		case 12:
			r.Fence = s.Uint(math.MaxUint64)
		case 13:
			r.Worker = string(s.Text())
		case 14:
			r.Lease = s.Int()
		case 15:
			r.NextAt = s.Int()
		case 16:
			r.Cancel = s.Bool()
		case 17:
			r.Reason = string(s.Text())
		case 18:
			r.Payload.readFields(s)
		case 19:
			r.Result.readFields(s)
		case 20:
			r.Log = string(s.Text())
		case 21:
			r.Attempts = make([]Attempt, s.Array())
			for i := range r.Attempts {
				r.Attempts[i].readFields(s)
			}
		case 22:
			r.Through = s.Int()
		case 23:
			r.Count = int(s.Int())
		case 24:
			r.Expires = s.Int()
		case 25:
			r.Upto = s.Int()
		case 26:
			if r.Trace.UnmarshalBinary(s.Bytes()) != nil {
				s.Fail()
			}
		case 27:
			r.Fired = s.Int()
		case 28:
			r.Opening = s.Uint(math.MaxUint64)
		case 29:
			r.Why.readFields(s)
		case 30:
			r.Wait.readFields(s)
		case 31:
			r.Placed = s.Bool()
		case 32:
			r.Discarded.readFields(s)
		case 33:
			r.Callback.readFields(s)
		case 34:
			r.Overdue = s.Bool()
		case 36:
			r.Callees.readFields(s)
		case 40:
			r.IgnorePause = s.Bool()
		case 44:
			r.Lag = s.Int()
		case 48:
			r.StartBy = s.Int()
		case 52:
			r.Unended = append([]byte{}, s.Bytes()...)
		case 53:
			r.Chose = string(s.Text())
		case 54:
			r.GateKey = string(s.Text())
		case 55:
			r.Released = s.Int()
		case 56:
			r.NamedGates = s.Bool()
		case 57:
			r.Releasing.readFields(s)
		case 58:
			r.NamedKeys = make([]string, s.Array())
			for i := range r.NamedKeys {
				r.NamedKeys[i] = string(s.Text())
			}
		case 59:
			r.Stopped = append([]byte{}, s.Bytes()...)
		case 60:
			r.Pauses = s.Bool()
		case 61:
			r.EndBy = s.Int()
		case 62:
			r.Keeps = s.Bool()
		case 64:
			r.Overlap = job.OwnPolicy(s.Uint(math.MaxUint8))
		default:
			s.Fail()
		}
	}
}

func (r *Ref) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			r.Inline = append([]byte{}, s.Bytes()...)
		case 2:
			r.Blob = string(s.Text())
		case 3:
			r.Type = string(s.Text())
		case 4:
			r.Cut = s.Bool()
		default:
			s.Fail()
		}
	}
}

func (y *Why) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			y.Code = string(s.Text())
		case 2:
			y.Gate = string(s.Text())
		case 3:
			y.Policy = string(s.Text())
		case 4:
			y.InTheWay = make([]string, s.Array())
			for i := range y.InTheWay {
				y.InTheWay[i] = string(s.Text())
			}
		case 5:
			y.Key = string(s.Text())
		case 6:
			y.Since = s.Int()
		default:
			s.Fail()
		}
	}
}

func (w *Wait) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			w.Gate = string(s.Text())
		case 2:
			w.Since = s.Int()
		case 3:
			w.Rank = s.Int()
		case 4:
			w.LetIn = s.Int()
		case 5:
			w.Ahead = s.Int()
		case 6:
			w.Units = int(s.Int())
		case 7:
			w.Key = string(s.Text())
		case 8:
			w.Asks = string(s.Text())
		case 13:
			w.Until = s.Int()
		default:
			s.Fail()
		}
	}
}

func (d *Discarded) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			d.At = s.Int()
		case 2:
			d.By = string(s.Text())
		case 3:
			d.Note = string(s.Text())
		default:
			s.Fail()
		}
	}
}

func (l *Releasing) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			l.By = string(s.Text())
		case 2:
			l.Reason = string(s.Text())
		default:
			s.Fail()
		}
	}
}

func (c *Callback) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			c.Event = string(s.Text())
		case 2:
			c.Run = string(s.Text())
		case 3:
			c.Count = int(s.Int())
		default:
			s.Fail()
		}
	}
}

func (c *Callees) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			c.Succeeded = string(s.Text())
		case 2:
			c.Failed = string(s.Text())
		default:
			s.Fail()
		}
	}
}

func (a *Attempt) readFields(s *record.Scanner) {
	for fields := s.Struct(); s.Next(&fields); {
		switch fields.Number {
		case 1:
			a.Number = int(s.Int())
		case 2:
			a.Started = s.Int()
		case 3:
			a.Ended = s.Int()
		case 4:
			a.Outcome = Outcome(s.Uint(math.MaxUint8))
		case 5:
			a.Error = string(s.Text())
		default:
			s.Fail()
		}
	}
}

// priority gives the one of the known priorities that is meant, without memory for it.
func priority(text []byte) queue.Priority {
	for _, p := range queue.Priorities {
		if string(text) == string(p) {
			return p
		}
	}
	return queue.Priority(text)
}

// read reads a record of a run.
func read(stored []byte) (Run, error) {
	var r Run
	s := record.Scan(stored)
	if r.ReadFields(&s); s.Whole() {
		return r, nil
	}
	var other Run
	err := record.Decode(stored, &other)
	return other, err
}
