package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Look shows the messages that a tenant has in a queue, and none of others. found is false where there is no queue of that name, or none that
// the tenant may know of.
type Look func(ctx context.Context, tenant, name string, most int) (look queue.Look, found bool, err error)

// lister is a queue that can list its messages.
type lister interface {
	Look(ctx context.Context, group string, most int) (queue.Look, error)
}

// errNotListed says that the queues of a server cannot list their messages.
var errNotListed = errors.New("the queues list no messages")

// LookInto looks into the queues of a process, by name; nil says that they are in SQS, which lists no messages. owners has the queues that only workers
// in other processes serve, and the tenant of each: for all other tenants such a queue does not exist.
func LookInto[Q lister](queues map[string]Q, owners map[string]string) Look {
	return func(ctx context.Context, tenant, name string, most int) (look queue.Look, found bool, err error) {
		if queues == nil {
			return look, false, errNotListed
		}
		q, there := queues[name]
		if owner := owners[name]; !there || owner != "" && owner != tenant {
			return look, false, nil
		}
		look, err = q.Look(ctx, tenant, most)
		return look, true, err
	}
}

type messageList struct {
	Queue string `path:"queue" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" example:"default" doc:"the queue's name"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" doc:"how many at most of each priority and state, 50 by default"`
}

// shownMessages is how many of each priority and state are shown where nothing is said.
const shownMessages = 50

func (a *api) looks() {
	register(a, operation{id: "list-messages", method: http.MethodGet, path: "/v1/queues/{queue}/messages", tag: "system", tagged: true, scope: access.Read,
		summary: "List the messages of the tenant in a queue of the server's own, the first of each priority and state; SQS cannot list its own",
		codes:   []control.Code{codeNoSuchPool, codeNotListed}}, a.listMessages)
}

func (a *api) listMessages(ctx context.Context, p *messageList, in input[noBody]) (*answer[wire.QueueMessages], error) {
	most := p.Limit
	if most == 0 {
		most = shownMessages
	}
	look, found, err := a.Look(ctx, in.tenant, p.Queue, most)
	if errors.Is(err, errNotListed) {
		return nil, newProblem(codeNotListed, "The queues of this server are in SQS, which cannot list messages. belfry queue list shows how many there are.")
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, newProblem(codeNoSuchPool, "This server has no queue "+p.Queue+". belfry queue list has those that you may see.")
	}
	shown := wire.QueueMessages{Queue: p.Queue, Priorities: map[string]wire.Depth{}, SortedOf: look.SortedOf, Items: []wire.QueueMessage{}}
	for _, priority := range queue.Priorities {
		d := look.Depth[priority]
		shown.Priorities[string(priority)] = wire.Depth{Ready: d.Ready, Delayed: d.Delayed, Taken: d.Taken}
	}
	for _, of := range []struct {
		state string
		ranks [3][]queue.Held
	}{{"taken", look.Taken}, {"ready", look.Ready}, {"delayed", look.Delayed}} {
		for rank, all := range of.ranks {
			for _, held := range all {
				shown.Items = append(shown.Items, message(held, of.state, queue.Priorities[rank]))
			}
		}
	}
	return &answer[wire.QueueMessages]{shown}, nil
}

// message shows one message. One that cannot be read, which no worker can either, has a mark in place of its run.
func message(held queue.Held, state string, priority queue.Priority) wire.QueueMessage {
	m := wire.QueueMessage{State: state, Priority: string(priority), SentAt: held.Sent.UTC(), Receives: held.Receives}
	if read, err := run.DecodeMessage(held.Body); err != nil {
		m.Unreadable = true
	} else {
		id := read.Run.ID
		m.Run, m.Step, m.NominalTime = id.Whole().String(), id.Step, id.Time()
	}
	switch state {
	case "ready":
		m.ReadyAt = held.Ready.UTC()
	case "delayed":
		m.ReadyAt = held.Back.UTC()
	case "taken":
		m.TakenAt, m.BackAt = held.Taken.UTC(), held.Back.UTC()
	}
	return m
}
