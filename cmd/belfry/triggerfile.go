package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What one request asks for at the most: few enough runs that each request is answered soon, and bytes that every server takes; or one run.
const (
	triggerPart  = 100
	triggerBytes = 4 << 20
)

// request is a run that a file asks for.
type request struct {
	job   string
	place string
	text  json.RawMessage // as the batch takes it
}

// asked is what became of one.
type asked struct {
	Job string `json:"job"`
	wire.RunVerdict
}

// requests reads the runs that a file asks for: name is the job of those that name none, "" for none such. Without a key of its own the n-th has
// the key KEY-n, where key is given.
func (c *cli) requests(file, name, key string) ([]request, error) {
	text, err := c.readFile(file)
	if err != nil {
		return nil, err
	}
	values, err := manifest.Read(file, text)
	var wrong *manifest.Error
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("%s: %s", manifest.Place(file, 0, wrong.Line), wrong.What)
	}
	var all []request
	for _, value := range values {
		entries := []*manifest.Value{value}
		if value.Kind == manifest.Array {
			entries = value.Items
		} else if runs := value.Member("runs"); runs != nil && runs.Kind == manifest.Array && len(value.Members) == 1 {
			entries = runs.Items
		}
		for _, entry := range entries {
			r, err := requestOf(entry, name, key, len(all)+1)
			r.place = manifest.Place(file, 0, entry.Line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.place, err)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func requestOf(entry *manifest.Value, name, key string, number int) (request, error) {
	if entry.Kind != manifest.Object {
		return request{}, fmt.Errorf(`got %s, want an object such as {"job": "report", "payload": {}}`, entry.Kind)
	}
	text := func(s string) *manifest.Value {
		return &manifest.Value{Kind: manifest.Text, Scalar: s, Line: entry.Line}
	}
	const long = "idempotency_key"
	switch short := entry.Member("key"); {
	case short != nil && entry.Member(long) != nil:
		return request{}, fmt.Errorf("key and %s are the same: want one of them", long)
	case short != nil:
		entry = entry.Without("key").With(long, short)
	case entry.Member(long) == nil && key != "":
		entry = entry.With(long, text(fmt.Sprintf("%s-%d", key, number)))
	}
	named := entry.Member("job")
	if named == nil && name == "" {
		return request{}, errors.New("job: missing; want the name of a job, or NAME for all that name none")
	}
	if named == nil {
		named = text(name)
		entry = entry.With("job", named)
	}
	return request{job: named.Scalar, text: entry.JSON()}, nil
}

// triggerAll asks for the runs of a file, a part at a time, and prints what became of each.
func (c *cli) triggerAll(ctx context.Context, server *client.Client, all []request) error {
	told := c.progress("trigger runs", int64(len(all)))
	defer told.end()
	out := newRows(c, []string{"JOB", "RUN", "STATE"})
	done, refused := 0, 0
	var failed error
	for rest := all; len(rest) > 0; {
		n, bytes := 1, len(rest[0].text)
		for ; n < min(len(rest), triggerPart) && bytes+len(rest[n].text) <= triggerBytes; n++ {
			bytes += len(rest[n].text)
		}
		part := rest[:n]
		rest = rest[n:]
		var verdicts []wire.RunVerdict
		if verdicts, failed = triggerSome(ctx, server, part); failed != nil {
			break
		}
		for i, v := range verdicts {
			row := []string{part[i].job, v.ID, v.State}
			if v.Problem != nil {
				refused++
				said := v.Problem.Summary()
				for _, e := range v.Problem.Errors {
					said += "\n  " + e.Field + ": " + e.Message
				}
				told.say("belfry: %s (%s): %s", part[i].job, part[i].place, said)
				row[2] = "refused"
			} else {
				done++
			}
			if err := out.add(asked{part[i].job, v}, row); err != nil {
				return err
			}
		}
		told.add(int64(len(part)))
	}
	told.end()
	if err := out.end(); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return fmt.Errorf("after %s of %d: %w", countOf(done, "run"), len(all), failed)
	case refused > 0:
		return fmt.Errorf("%d of %d runs were refused", refused, len(all))
	}
	return nil
}

// triggerSome gives a verdict on each. What has a form that the API does not take makes it refuse the whole request: the others are sent again.
func triggerSome(ctx context.Context, server *client.Client, part []request) ([]wire.RunVerdict, error) {
	verdicts := make([]wire.RunVerdict, len(part))
	left := make([]int, len(part))
	for i := range part {
		left[i] = i
	}
	for len(left) > 0 {
		batch := make([]json.RawMessage, len(left))
		for k, i := range left {
			batch[k] = part[i].text
		}
		got, err := server.TriggerDocuments(ctx, batch)
		if err == nil && len(got) != len(left) {
			err = fmt.Errorf("the server answered with %d verdicts on %d runs", len(got), len(left))
		}
		var refused *client.Error
		if errors.As(err, &refused) {
			if found := entriesOf(refused.Problem, len(left)); found != nil {
				for k, problem := range found {
					verdicts[left[k]] = wire.RunVerdict{Status: problem.Status, Problem: problem}
				}
				left = slices.DeleteFunc(left, func(i int) bool { return verdicts[i].Problem != nil })
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		for k, i := range left {
			verdicts[i] = got[k]
		}
		break
	}
	return verdicts, nil
}
