package run

import (
	"math"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
)

// A run is written and read with each of its steps, so by hand. The tags of the structs are the form, by which record.Encode and
// record.Decode write and read the same; a test sees to it that no field is forgotten here.

// enough is the room in which most records are written, without memory of their own. It lies on the stacks of those who carry runs out.
const enough = 256

func (r *Run) record() []byte {
	var room [enough]byte
	return r.WriteFields(record.Write(room[:])).Stored()
}

// WriteFields writes the fields of the run's record.
func (r *Run) WriteFields(f record.Fields) record.Fields {
	f = f.Always(1, int64(r.State)).Int(2, r.Generation).Int(3, int64(r.Trigger)).Text(4, string(r.Priority)).Uint(5, r.Epoch)
	f = f.Int(6, r.Created).Int(7, r.Started).Int(8, r.Ended)
	f = f.Int(9, int64(r.Attempt)).Int(10, int64(r.Failures)).Int(11, int64(r.Crashes)).Uint(12, r.Fence)
	f = f.Text(13, r.Worker).Int(14, r.Lease).Int(15, r.NextAt).Bool(16, r.Cancel).Text(17, r.Reason)
	if !r.Payload.IsZero() {
		f = f.Close(r.Payload.writeFields(f.Open(18)))
	}
	if !r.Result.IsZero() {
		f = f.Close(r.Result.writeFields(f.Open(19)))
	}
	f = f.Text(20, r.Log)
	if len(r.Attempts) > 0 {
		f = f.Array(21, len(r.Attempts))
		for i := range r.Attempts {
			f = f.CloseElement(r.Attempts[i].writeFields(f.OpenElement()))
		}
	}
	f = f.Int(22, r.Through).Int(23, int64(r.Count)).Int(24, r.Expires).Int(25, r.Upto)
	if !r.Trace.IsZero() {
		data, _ := r.Trace.MarshalBinary() // which never fails
		f = f.Bytes(26, data)
	}
	return f
}

func (r *Ref) writeFields(f record.Fields) record.Fields {
	return f.Bytes(1, r.Inline).Text(2, r.Blob).Text(3, r.Type).Bool(4, r.Cut)
}

func (a *Attempt) writeFields(f record.Fields) record.Fields {
	return f.Always(1, int64(a.Number)).Int(2, a.Started).Int(3, a.Ended).Int(4, int64(a.Outcome)).Text(5, a.Error)
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
