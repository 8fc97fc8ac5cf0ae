package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// How runs are watched.
const (
	watchEvery  = time.Second
	watchedMost = 1000 // runs that are looked at each time
)

// watch lists runs again and again until an interrupt: on a terminal it draws the list anew, elsewhere it adds a line for each
// run that is new or has another state.
type watch struct {
	*cli
	server *client.Client
	filter client.RunFilter
	most   int
	title  string

	byChange bool // what changed last stands first

	seen map[string]string // states that were told, by run
	out  *rows             // where lines are added
}

func (w *watch) run(ctx context.Context) error {
	ctx, end := interruptible(ctx, os.Interrupt, syscall.SIGTERM)
	defer end()
	draws := isTerminal(w.stdout) && !dumb() && !w.structured()
	poll := time.NewTicker(watchEvery)
	defer poll.Stop()
	answered := w.now()
	for {
		listed, err := w.list(ctx, draws)
		var lost *client.Unreachable
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && draws:
			answered, err = w.now(), w.draw(listed)
		case err == nil:
			answered, err = w.now(), w.add(listed)
		case errors.As(err, &lost) && w.seen != nil && w.now().Sub(answered) < waitWithout:
			err = nil
		}
		if err != nil {
			return err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// list reads as many runs as can be shown, newest first.
func (w *watch) list(ctx context.Context, draws bool) (listed []wire.Run, err error) {
	most := w.most
	if most == 0 || most > watchedMost {
		most = watchedMost
	}
	if draws {
		if _, height, err := term.GetSize(int(w.stdout.(*os.File).Fd())); err == nil {
			most = max(1, min(most, height-4)) // the title, an empty line, the headings, and where the cursor stands
		}
	}
	filter := w.filter
	filter.Most = most
	if w.byChange {
		page, err := w.server.RunsByChange(ctx, filter)
		return page.Items, err
	}
	for r, err := range w.server.Runs(ctx, filter) {
		if err != nil {
			return nil, err
		}
		listed = append(listed, r)
	}
	return listed, nil
}

// draw puts the list where the one before stood, line by line, so that nothing flickers.
func (w *watch) draw(listed []wire.Run) error {
	var text bytes.Buffer
	page := *w.cli
	page.stdout, page.width = &text, widthOf(w.stdout)
	headings, row := w.columns()
	out := newRows(&page, headings)
	for _, r := range listed {
		if err := out.add(r, row(r)); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	title := fmt.Sprintf("%s  %s, every %s; Ctrl-C ends it", w.now().In(w.zone).Format(time.TimeOnly), w.title, watchEvery)
	if page.width > 0 {
		title = cutTo(title, page.width)
	}
	screen := "\x1b[H"
	if w.seen == nil {
		w.seen, screen = map[string]string{}, "\x1b[H\x1b[2J"
	}
	for _, line := range append([]string{title, ""}, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...) {
		screen += line + "\x1b[K\n"
	}
	_, err := fmt.Fprint(w.stdout, screen+"\x1b[J")
	return err
}

func (w *watch) columns() (headings []string, row func(wire.Run) []string) {
	if w.byChange {
		return changeHeadings, changeRow
	}
	return runHeadings, runRow
}

// add tells what is new, oldest first.
func (w *watch) add(listed []wire.Run) error {
	headings, row := w.columns()
	if w.seen == nil {
		w.seen, w.out = map[string]string{}, newRows(w.cli, headings)
	}
	now := make(map[string]string, len(listed))
	for _, r := range slices.Backward(listed) {
		state := fmt.Sprintf("%s %d", r.State, r.Attempt)
		if now[r.ID] = state; w.seen[r.ID] == state {
			continue
		}
		if !w.structured() {
			if err := w.out.add(r, row(r)); err != nil {
				return err
			}
			continue
		}
		text, err := encodeJSON(r, "", "") // a line each: an array would never end
		if err == nil {
			_, err = w.stdout.Write(text)
		}
		if err != nil {
			return err
		}
	}
	w.seen = now // what has left the list was told
	if w.structured() {
		return nil
	}
	return w.out.table.flush()
}
