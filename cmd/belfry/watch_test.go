package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestRunsAreWatched(t *testing.T) {
	t.Parallel()
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `{"target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "a", "-f", "-")
	first := decode[wire.Run](t, call(0, "", "job", "trigger", "a", "--wait", "-o", "json").out).ID

	// Not on a terminal: a line for what is new, as JSON an object each.
	watching := command(t, "run", "list", "--job", "a", "--scheduled", "--watch", "-o", "json", "--address", address)
	out, err := watching.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	in := json.NewDecoder(out)
	next := func() (r wire.Run) {
		t.Helper()
		if err := in.Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := next(); r.ID != first || r.State != "succeeded" {
		t.Errorf("at first it shows %+v", r)
	}
	later := decode[wire.Run](t, call(0, "", "job", "trigger", "a", "--delay", "1h", "-o", "json").out).ID
	if r := next(); r.ID != later || r.State != "scheduled" {
		t.Errorf("then it shows %+v", r)
	}
	call(0, "", "run", "cancel", later)
	if r := next(); r.ID != later || r.State != "cancelled" {
		t.Errorf("then it shows %+v", r)
	}
	watching.Process.Signal(os.Interrupt)
	over := signalled(watching, os.Interrupt)
	if err := watching.Wait(); err != nil {
		t.Errorf("interrupted: %v, want code 0", err)
	}
	over()

	// On a terminal it is drawn anew, no higher than the terminal.
	for range 12 {
		call(0, "", "job", "trigger", "a", "--delay", "1h")
	}
	drawing := command(t, "run", "list", "--job", "a", "--scheduled", "--watch", "--address", address)
	drawing.Env = append(drawing.Env, "TERM=xterm", "NO_COLOR=1")
	terminal, err := pty.StartWithSize(drawing, &pty.Winsize{Rows: 10, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var shown strings.Builder
	block := make([]byte, 4096)
	for strings.Count(shown.String(), "\x1b[J") < 2 {
		n, err := terminal.Read(block)
		if shown.Write(block[:n]); err != nil {
			t.Fatalf("%v after %q", err, shown.String())
		}
	}
	drawing.Process.Signal(os.Interrupt)
	for {
		if _, err := terminal.Read(block); err != nil {
			break // it has gone
		}
	}
	if err := drawing.Wait(); err != nil {
		t.Errorf("interrupted: %v, want code 0", err)
	}
	pages := strings.Split(shown.String(), "\x1b[J")
	if !strings.HasPrefix(pages[1], "\x1b[H") || strings.Contains(pages[1], "\x1b[2J") || strings.Count(pages[1], "scheduled") != 6 || strings.Count(pages[1], "\r\n") != 9 {
		t.Errorf("the second page is %q", pages[1])
	}
	for _, line := range strings.Split(pages[1], "\r\n") {
		if text := strings.NewReplacer("\x1b[K", "", "\x1b[H", "").Replace(line); columnsOf(text) > 80 {
			t.Errorf("%d columns: %q", columnsOf(text), text)
		}
	}
}
