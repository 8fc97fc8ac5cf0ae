package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// One command says of any run why it does not go on, or has ended as it did, in the words of the server. On a server that works each of these
// reasons comes to pass at once; package api makes the others happen, which take an outage.
func TestRunWhy(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec", "--concurrency", "2", "--queue", "narrow", "--remote-queue", "far")
	here := to(t, address)
	const sleep = `target: {exec: {argv: [sleep, "600"]}}` + "\ntimeout: 20m"
	jobs := []string{
		demand("plain"),
		demand("held", "paused: true"),
		demand("nobody", "queue: far"),
		"name: slow\noverlap: queue\n" + sleep,
		"name: narrow\nqueue: narrow\n" + sleep,
		"name: failing\nretry: {max_attempts: 3, initial: 1h, max: 1h}\ntarget: {exec: {argv: ['false']}}",
		"name: flow\ntarget: {workflow: {steps: {only: {exec: {argv: [sleep, '600']}, queue: narrow}}}}",
	}
	here(0, strings.Join(jobs, "\n---\n"), "job", "apply", "-f", "-")
	trigger := func(job string, more ...string) string {
		t.Helper()
		return decode[wire.Run](t, here(0, "", append([]string{"job", "trigger", job, "-o", "json"}, more...)...).out).ID
	}
	narrow := []string{trigger("narrow"), trigger("narrow")}
	for _, id := range narrow {
		eventually(t, "both places of the queue are taken", func() (bool, string) {
			out := here(0, "", "run", "why", id).out
			return strings.HasPrefix(out, "Attempt 1 is under way."), out
		})
	}
	slow := trigger("slow")
	for code, c := range map[string]struct {
		job, delay string // "": the first run of the narrow queue
		says       string
	}{
		"not_due":       {"plain", "1h", "Its time has not come. Until: "},
		"claimed_ahead": {"plain", "50s", "It was claimed ahead and waits in the queue default for its time. Until: "},
		"paused":        {"held", "0s", "Up to: belfry job resume held."},
		"gate":          {"slow", "0s", "It is the next in line at the gate job:slow, and " + slow + " is in progress. Up to: the runs in its way."},
		"running":       {"", "", "Up to: worker "},
		"queued":        {"narrow", "0s", "All 2 places of its workers are taken. Up to: the workers of the queue narrow."},
		"no_worker":     {"nobody", "0s", "No worker serves the queue far. Up to: whoever starts workers of the queue far."},
		"backing_off":   {"failing", "0s", "Attempt 1 failed. Try 2 of 3 begins when its back-off is over. Until: "},
		"steps":         {"flow", "0s", "Steps of its workflow have not ended. Up to: belfry run steps "},
	} {
		id := narrow[0]
		if c.job != "" {
			id = trigger(c.job, "--delay", c.delay)
		}
		eventually(t, code, func() (bool, string) {
			shown := here(0, "", "run", "why", id).out
			r := getJSON[wire.Run](t, address+"/v1/runs/"+id)
			saw := fmt.Sprintf("%s\n%+v", shown, r.Waiting)
			if len(r.Waiting) != 1 || r.Waiting[0].Code != code || !strings.Contains(shown, c.says) || !strings.Contains(shown, r.Waiting[0].Text) {
				return false, saw
			}
			data := decode[reasons](t, here(0, "", "run", "why", id, "-o", "json").out)
			return len(data.Waiting) == 1 && data.Waiting[0].Code == code, saw
		})
	}

	ended := trigger("plain", "--delay", "1h")
	here(0, "", "run", "cancel", ended)
	if got := here(0, "", "run", "why", ended).out; !strings.HasPrefix(got, "It is cancelled: ") {
		t.Errorf("cancelled: %s", got)
	}
	if got := here(0, "", "run", "why", ended, "-o", "json").out; !strings.Contains(got, `"state": "cancelled"`) || !strings.Contains(got, `"reason"`) {
		t.Errorf("as data: %s", got)
	}
	here(0, "", "run", "cancel", "--all", "--yes") // nothing is to hold up the server's end
}
