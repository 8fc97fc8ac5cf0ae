package main

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"
)

// output takes what the program and its mail server say.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestTheMailsArrive(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var said output
	if err := run(ctx, "pebble://"+t.TempDir(), &said); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	const want = `mail server: ann@example.org: 451 too busy, try again later
mail server: ann@example.org: 451 too busy, try again later
mail server: ann@example.org: 250 fine
ann@example.org: succeeded after attempt 3
mail server: bob@example.net: 550 nobody of that name here
bob@example.net: failed after attempt 1
dead letter failed: handler: 550 "nobody of that name here"
mail server: bob@example.net: 451 too busy, try again later
mail server: bob@example.net: 451 too busy, try again later
mail server: bob@example.net: 250 fine
retried: succeeded after attempt 4
`
	if said.String() != want {
		t.Errorf("it said\n%s\nwant\n%s", said.String(), want)
	}
}
