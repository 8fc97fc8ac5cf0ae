package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// However many read a log at once, the bucket is looked into every two seconds and the run is touched every fifteen; of no more logs at once than
// memory is meant for, and of the newest attempt alone.
func TestHowOftenALogElsewhereIsAskedFor(t *testing.T) {
	var now time.Duration
	l := NewLogReader(&dispatch.Dispatcher{Config: dispatch.Config{Elapsed: func() time.Duration { return now }}}, nil, nil)
	one := reading{"acme", "a~1"}
	var looks, touches int
	for ; now < time.Minute; now += 100 * time.Millisecond {
		for range 3 {
			touch, look := l.ask(one, 5, true)
			if touch && !look {
				t.Fatal("it is touched, and nobody looks")
			}
			looks, touches = looks+map[bool]int{true: 1}[look], touches+map[bool]int{true: 1}[touch]
		}
	}
	if looks != 30 || touches < 4 || touches > 5 {
		t.Errorf("in a minute it was looked for %d times, and touched %d times", looks, touches)
	}
	l.change(one, 5, func(read *readLog) { read.touch = 0 }) // one that failed
	if touch, look := l.ask(one, 5, true); !touch || !look {
		t.Errorf("a touch that failed is made again: %t", touch)
	}
	now += touchEvery
	if touch, look := l.ask(one, 5, false); touch || !look {
		t.Error("it is touched, and may not be yet")
	}
	now += lookEvery
	if touch, look := l.ask(one, 5, true); !touch || !look {
		t.Error("once it may be, it is not touched with the next look")
	}
	l.change(one, 5, func(read *readLog) { read.log = runlog.Plain([]byte("of the first attempt")) })
	if touch, look := l.ask(one, 6, true); !touch || !look {
		t.Error("the next attempt is not asked for its log")
	}
	l.change(one, 6, func(read *readLog) {
		if !read.log.IsEmpty() {
			t.Errorf("it is shown %q", read.log.Text())
		}
	})
	if touch, look := l.ask(one, 5, true); touch || look {
		t.Error("a late look at the attempt before asks it again")
	}
	for i := range 2 * mostReads {
		l.ask(reading{"acme", fmt.Sprint(i)}, 1, true)
	}
	if len(l.readers.of) != mostReads {
		t.Errorf("%d logs are read", len(l.readers.of))
	}
	now += readFor + 1
	l.ask(one, 6, true)
	if len(l.readers.of) != 1 {
		t.Errorf("%d logs are held that nobody reads", len(l.readers.of))
	}
}
