package linear

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// keyState is what an idempotency key stands for.
type keyState struct {
	bound bool
	run   string // "" where nobody has told
	body  string
	at    int64 // Unix ms, of the request that bound it
}

// keyStep is a request for a run under a key. A request that was refused before it came to its key is none.
type keyStep struct {
	body   string // job and body
	at     int64
	run    string // of the answer
	reused bool   // 409: another body
	open   bool   // not known
}

// keysLast is for how long a key is promised to be remembered.
const keysLast = int64(24 * time.Hour / time.Millisecond)

var keyModel = porcupine.NondeterministicModel{
	Init:              func() []any { return []any{keyState{}} },
	Step:              func(state, in, _ any) []any { return states(in.(keyStep).on(state.(keyState))) },
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, _ any) string { return in.(keyStep).String() },
	DescribeState:     func(state any) string { return state.(keyState).String() },
}

func (in keyStep) on(s keyState) []keyState {
	var after []keyState
	if s.bound && in.at-s.at >= keysLast { // it may be forgotten
		after = in.on(keyState{})
	}
	switch {
	case in.reused:
		if s.bound && s.body != in.body {
			after = append(after, s)
		}
	case in.open && s.bound:
		after = append(after, s)
	case in.open:
		after = append(after, s, keyState{bound: true, body: in.body, at: in.at})
	case !s.bound:
		after = append(after, keyState{bound: true, run: in.run, body: in.body, at: in.at})
	case s.body == in.body && (s.run == "" || s.run == in.run):
		s.run = in.run
		after = append(after, s)
	}
	return after
}

func (s keyState) String() string {
	if !s.bound {
		return "not used"
	}
	return fmt.Sprintf("run %q for request %s", s.run, s.body)
}

func (in keyStep) String() string {
	switch {
	case in.open:
		return "ask " + in.body + ": not known"
	case in.reused:
		return "ask " + in.body + ": 409, used with another body"
	}
	return "ask " + in.body + ": run " + in.run
}
