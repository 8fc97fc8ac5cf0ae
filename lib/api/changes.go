package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Changes is where a server tells what changes.
type Changes struct {
	Hub *changes.Hub

	// Complete says that no other process writes to the store.
	Complete bool
}

const (
	changesPath = "/v1/changes"

	changesFor   = 45 * time.Second       // a stream lasts, less than any request may: then its client opens another
	changesEvery = 250 * time.Millisecond // at most

	mediaEvents = "text/event-stream"
)

func (a *api) following() {
	register(a, operation{id: "follow-changes", method: http.MethodGet, path: changesPath, tag: "system", scope: access.Read, waits: true, media: mediaEvents,
		summary: "Follow what changes for the tenant: a stream of server-sent events for 45 seconds, each with names of what to ask for anew, at most four a second"}, a.followChanges)
}

// events is a stream of them.
type events struct {
	ContentType string `header:"Content-Type"`
	Body        streamed
}

func (a *api) followChanges(ctx context.Context, _ *struct{}, in input[noBody]) (*events, error) {
	listener, err := a.Changes.Hub.Listen(in.tenant)
	if errors.Is(err, changes.ErrFull) {
		p := newProblem(codeRateLimited, fmt.Sprintf("As many follow changes here as may, which is %d of a tenant and %d in all. Ask for what you want to know every few seconds, and try again later.",
			changes.MaxTenantListeners, changes.MaxListeners))
		p.RetryAfter = schedule.Duration(changesFor)
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, changesFor)
	return &events{ContentType: mediaEvents, Body: func(w http.ResponseWriter) {
		defer cancel()
		defer listener.Close()
		a.stream(ctx, w, listener)
	}}, nil
}

// stream sends what changes until ctx ends, the client has gone, or the server stops.
func (a *api) stream(ctx context.Context, w http.ResponseWriter, from *changes.Listener) {
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events until there are many
	out := http.NewResponseController(w)
	next := wire.Changes{Complete: &a.Changes.Complete, Changed: []string{}}
	for {
		for next.Complete == nil && len(next.Changed) == 0 {
			select {
			case <-from.Ready():
				next.Changed = from.Take()
			case <-from.Ended():
				return
			case <-ctx.Done():
				return
			}
		}
		text, err := json.Marshal(next)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		if err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-time.After(changesEvery):
			next = wire.Changes{}
		case <-from.Ended():
			return
		case <-ctx.Done():
			return
		}
	}
}
