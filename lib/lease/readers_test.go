package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// A log is shown while it is read, by the newest attempt alone, and of no more runs at once than memory is meant for.
func TestLogsAreShownWhileTheyAreRead(t *testing.T) {
	var r readers
	one, text := reading{"acme", "a~1"}, func(text string) runlog.Log { return runlog.Plain([]byte(text)) }
	if r.reads(one, 0) || r.show(one, 0, 1, text("unasked")) {
		t.Error("it is read, and nobody has asked")
	}
	if _, known := r.ask(one, 0); known || !r.reads(one, readFor) || r.reads(reading{"rival", "a~1"}, 0) {
		t.Error("whoever has asked is forgotten")
	}
	if !r.show(one, time.Second, 5, text("first")) || r.show(one, time.Second, 4, text("late")) || !r.show(one, time.Second, 5, text("more")) {
		t.Error("what the newest attempt shows is not taken, or what an older one does")
	}
	if log, known := r.ask(one, 2*time.Second); !known || string(log.Text()) != "more" {
		t.Errorf("it reads %q", log.Text())
	}
	for i := range 2 * mostReads {
		r.ask(reading{"acme", fmt.Sprint(i)}, 3*time.Second)
	}
	if len(r.of) != mostReads || !r.reads(one, 3*time.Second) {
		t.Errorf("%d logs are read", len(r.of))
	}
	late := 3*time.Second + readFor + 1
	if r.show(one, late, 5, text("unread")) || r.reads(one, late) {
		t.Error("it is shown though nobody has asked for long")
	}
	if _, known := r.ask(one, late); known || len(r.of) != 1 {
		t.Errorf("%d logs are held that nobody reads", len(r.of))
	}
}

// One tenant that reads more logs than there is room for takes none from others: they come to as many as it has.
func TestNoTenantTakesTheRoomOfOthers(t *testing.T) {
	var r readers
	count := func() map[string]int {
		has := map[string]int{}
		for which := range r.of {
			has[which.tenant]++
		}
		return has
	}
	for i := range 2 * mostReads {
		r.ask(reading{"acme", fmt.Sprint(i)}, time.Duration(i))
	}
	now := time.Second
	r.ask(reading{"rival", "a~1"}, now)
	if !r.reads(reading{"rival", "a~1"}, now) || r.reads(reading{"acme", "0"}, now) || !r.reads(reading{"acme", "1"}, now) {
		t.Errorf("they read %v: what was asked for longest ago has not made room", count())
	}
	for round := range 3 {
		for i := range 2 * mostReads {
			r.ask(reading{"acme", fmt.Sprint(i)}, now)
			r.ask(reading{"rival", fmt.Sprint(i)}, now)
		}
		if has := count(); has["acme"] != mostReads/2 || has["rival"] != mostReads/2 {
			t.Errorf("in round %d they read %v, want half each", round, has)
		}
	}
}
