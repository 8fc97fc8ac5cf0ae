package sqs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

// through is a transport that does something with each request.
type through func(operation string, body []byte, forward func(body []byte) (*http.Response, error)) (*http.Response, error)

func (f through) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return f(strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), body, func(body []byte) (*http.Response, error) {
			sent := r.Clone(r.Context())
			sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return next.RoundTrip(sent)
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errReset = &resetError{}

type resetError struct{}

func (*resetError) Error() string   { return "connection reset by peer" }
func (*resetError) Timeout() bool   { return false }
func (*resetError) Temporary() bool { return true }

func throttle() *http.Response {
	return reply(http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#RequestThrottled", "message": "Rate exceeded"})
}

// partly forwards the entries of a batch that keep says, and answers for the others with a failure.
func partly(body []byte, forward func([]byte) (*http.Response, error), keep func(i int) bool, no failure) (*http.Response, error) {
	var in map[string]any
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var kept, failed []any
	for i, e := range in["Entries"].([]any) {
		if keep(i) {
			kept = append(kept, e)
			continue
		}
		no := no
		no.Id = e.(map[string]any)["Id"].(string)
		failed = append(failed, no)
	}
	if len(kept) == 0 {
		return reply(http.StatusOK, map[string]any{"Successful": []any{}, "Failed": failed}), nil
	}
	in["Entries"] = kept
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	answered, err := forward(body)
	if err != nil || answered.StatusCode != http.StatusOK {
		return answered, err
	}
	defer answered.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(answered.Body).Decode(&out); err != nil {
		return nil, err
	}
	already, _ := out["Failed"].([]any)
	out["Failed"] = append(already, failed...)
	return reply(http.StatusOK, out), nil
}

var unwell = failure{Code: "InternalError", Message: "try again"}

// Requests are refused, their answers lost, entries of batches failed, and everything late: some messages come twice, and none is
// lost. What a sender was told that it failed, it sends again.
func TestFault20_NothingIsLostOnABadNetwork(t *testing.T) {
	chaos := through(func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		switch rand.IntN(8) {
		case 0:
			return throttle(), nil
		case 1:
			if answered, err := forward(body); err == nil {
				answered.Body.Close()
			}
			return nil, errReset
		case 2:
			return nil, errReset
		case 3, 4:
			if strings.HasSuffix(operation, "Batch") {
				return partly(body, forward, func(int) bool { return rand.IntN(2) == 0 }, unwell)
			}
		}
		return forward(body)
	})
	q := open(t, chaos.over)
	const senders, each = 3, 40
	var sent, received sync.WaitGroup
	for s := range senders {
		sent.Go(func() {
			var todo []queue.Outgoing
			for i := range each {
				todo = append(todo, queue.Outgoing{Body: fmt.Appendf(nil, "%d/%d", s, i), Group: "default"})
			}
			for len(todo) > 0 {
				n := min(len(todo), queue.MaxBatch)
				errs, err := q.Send(t.Context(), queue.Priorities[s], todo[:n]...)
				if t.Context().Err() != nil {
					return
				}
				var again []queue.Outgoing
				for i, m := range todo[:n] {
					if err != nil || errs[i] != nil {
						again = append(again, m)
					}
				}
				todo = append(again, todo[n:]...)
			}
		})
	}
	var mu sync.Mutex
	seen := map[string]int{}
	end := time.Now().Add(5 * time.Minute)
	for range 2 {
		received.Go(func() {
			for time.Now().Before(end) {
				mu.Lock()
				all := len(seen) == senders*each
				mu.Unlock()
				if all {
					return
				}
				got, err := q.Receive(t.Context(), queue.MaxBatch, time.Second, 2*time.Second)
				if err != nil {
					continue
				}
				mu.Lock()
				for _, m := range got {
					seen[string(m.Body)]++
				}
				mu.Unlock()
				q.Delete(t.Context(), got...)
			}
		})
	}
	sent.Wait()
	received.Wait()
	doubled := 0
	for _, n := range seen {
		doubled += n - 1
	}
	t.Logf("%d messages, %d more deliveries", len(seen), doubled)
	if len(seen) != senders*each {
		t.Errorf("received %d of %d messages", len(seen), senders*each)
	}
}

func TestFault23_OnlyFailedEntriesGoAgain(t *testing.T) {
	asked := 0
	q := open(t, through(func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation != "SendMessageBatch" {
			return forward(body)
		}
		if asked++; asked == 1 {
			return partly(body, forward, func(i int) bool { return i != 3 && i != 7 }, unwell)
		}
		if n := bytes.Count(body, []byte(`"MessageBody"`)); n != 2 {
			t.Errorf("sent %d entries again, want the 2 that failed", n)
		}
		return forward(body)
	}).over)
	batch := make([]queue.Outgoing, queue.MaxBatch)
	for i := range batch {
		batch[i].Body = fmt.Appendf(nil, "message %d", i)
	}
	errs, err := q.Send(t.Context(), queue.Normal, batch...)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	if asked != 2 {
		t.Errorf("%d requests, want 2", asked)
	}
	seen := map[string]int{}
	for end := time.Now().Add(5 * time.Minute); len(seen) < len(batch) && time.Now().Before(end); {
		got, err := q.Receive(t.Context(), queue.MaxBatch, time.Second, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got {
			seen[string(m.Body)]++
		}
	}
	if len(seen) != len(batch) {
		t.Errorf("received %d of %d messages", len(seen), len(batch))
	}
}
