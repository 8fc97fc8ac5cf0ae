package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// ask asks for a run under a key, until it is answered; often twice at once, and now and then again what was asked before.
func (a *actor) ask(ctx context.Context) error {
	one := ask{number: a.number()}
	one.key = fmt.Sprintf("%s-%d", a.h.job, one.number)
	at, again := len(a.h.asks), false
	if at > 0 && a.rng.IntN(6) == 0 {
		if i := a.rng.IntN(at); a.h.asks[i].key != "" {
			one, at, again = a.h.asks[i], i, true
		}
	}
	t := trigger(one.number)
	if one.number%4 == 0 {
		t.Delay = new(a.paced(time.Duration(one.number%30) * 100 * time.Millisecond))
	}
	times := 1 + a.rng.IntN(2)
	runs := make([]run, times)
	errs := make([]error, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			_, _, errs[i] = a.until(ctx, Operation{What: "trigger", Key: one.key, Request: t}, func(ctx context.Context) (_ any, err error) {
				runs[i], err = a.server.Trigger(ctx, a.h.job, t, one.key)
				return runs[i], err
			})
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return a.unexpected(ctx, "trigger", err)
		}
		one.ids = append(one.ids, runs[i].ID)
		a.accept(runs[i].ID)
	}
	if again {
		a.h.asks[at] = one
	} else {
		a.h.asks = append(a.h.asks, one)
	}
	if a.rng.IntN(10) > 0 {
		return nil
	}
	// Another body under the key is refused, whatever happened since.
	other := trigger(-one.number)
	_, _, err := a.until(ctx, Operation{What: "trigger", Key: one.key, Request: other}, func(ctx context.Context) (any, error) {
		return a.server.Trigger(ctx, a.h.job, other, one.key)
	})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.complain("P9: another body under key %s: want 409, got %v", one.key, err)
	}
	return nil
}

// Each third request carries more than a run's record holds, so that it goes by a blob.
const (
	largeEach = 3
	large     = 9 << 10
)

// given is the payload of a request, of which every byte follows from its number.
func given(number int) []byte {
	pad := ""
	if number%largeEach == 0 {
		pad = strings.Repeat(strconv.Itoa(number), large/len(strconv.Itoa(number))+1)
	}
	return fmt.Appendf(nil, `{"ask":%d,"pad":%q}`, number, pad)
}

func trigger(number int) wire.Trigger { return wire.Trigger{Payload: given(number)} }

// askOnce asks without a key, which the Go client never does.
func (a *actor) askOnce(ctx context.Context) error {
	if err := a.cfg.Gate.wait(ctx); err != nil {
		return err
	}
	one := ask{number: a.number()}
	seen := Operation{Client: a.name, What: "trigger", Job: a.h.job, Request: trigger(one.number), Sent: a.cfg.Now()}
	body, err := json.Marshal(seen.Request)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, anyServer+"/v1/jobs/"+a.h.job+"/runs", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if a.cfg.Token != "" {
		request.Header.Set("Authorization", "Bearer "+a.cfg.Token)
	}
	var got run
	status := 0
	given, err := a.http.Do(request)
	if err == nil {
		defer given.Body.Close()
		status = given.StatusCode
		err = json.NewDecoder(given.Body).Decode(&got)
	}
	seen.Answered, seen.Err = a.cfg.Now(), err
	switch {
	case err == nil && status == http.StatusAccepted:
		seen.Answer = got
	case err == nil:
		seen.Status, seen.Err = status, errors.New(http.StatusText(status))
	}
	a.cfg.Observe(seen)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status == http.StatusAccepted && err == nil:
		one.ids = []string{got.ID}
		a.accept(got.ID)
		a.count(&a.answered)
	case status == 0 || status == http.StatusAccepted || status == http.StatusServiceUnavailable:
		one.lost = true
		a.count(&a.lost)
	default:
		a.complain("trigger of %s without a key: %d %v", a.h.job, status, err)
	}
	a.h.asks = append(a.h.asks, one)
	return nil
}
