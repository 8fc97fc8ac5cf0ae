//go:build emulators

package e2e

import (
	"testing"
)

// One deployment serves all of it, at once: most of the time is waiting. What is told in logs is looked at when all is done.
func TestStack(t *testing.T) {
	f := fixture{stack: opened(t, "BELFRY_"), second: opened(t, "BELFRY_SECOND_"), target: listen(t)}
	for name, part := range map[string]func(*testing.T, fixture){
		"the schedule ticks, of each stack for its own": theScheduleTicks,
		"all else": func(t *testing.T, f fixture) {
			t.Run("use", use(f))
			// An update may break requests off in an emulator, though not in AWS, so that nobody else is at work meanwhile.
			t.Run("runs survive an update of the stack", func(t *testing.T) { update(t, f) })
			t.Run("metrics", func(t *testing.T) { metricsAreWritten(t, f) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, f)
		})
	}
}

// uses are what users do.
var uses = map[string]func(*testing.T, fixture){
	"nobody gets in without a key": closed,
	"jobs are kept":                jobsAreKept,
	"the console shows the stack":  theConsoleShowsTheStack,
	"P2_P3_Fault05_fires_come_at_their_second_however_many_tick": firesComeAtTheirSecond,
	"a failed attempt comes again, later":                        retries,
	"of a batch only what failed comes again":                    partialBatch,
	"P7_dead_letters_are_found_and_redriven":                     deadLetters,
	"a message that nobody can read is kept":                     unreadable,
	"P5_at_most_once":                                            atMostOnce,
	"P8_an_edit_holds":                                           editHolds,
	"P8_a_pause_holds":                                           pauseHolds,
	"P9_one_key_one_run":                                         oneKeyOneRun,
	"W1_W3_Fault40_many_steps_end_at_once":                       fanOut,
}

// use gives all of it, at once.
func use(f fixture) func(*testing.T) {
	return func(t *testing.T) {
		for name, test := range uses {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, f)
			})
		}
	}
}

// fixture is what the tests share.
type fixture struct {
	stack, second stack
	target        *target
}
