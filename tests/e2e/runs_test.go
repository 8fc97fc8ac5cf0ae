//go:build emulators

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A failed attempt is put off by the visibility of its message.
func retries(t *testing.T, f fixture) {
	p := f.target.answering("retries", func(nth int, _ hit) int {
		if nth < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	name := f.stack.put(t, "retries", object{"target": p.get(), "retry": object{"max_attempts": 5, "initial": "2s", "factor": 2}})
	run := f.stack.start(t, name, object{})
	ended := f.stack.ended(t, run)
	if ended.text("state") != "succeeded" || ended.number("attempt") != 3 {
		t.Fatalf("ended as %v", ended)
	}
	hits := p.seen()
	if len(hits) != 3 {
		t.Fatalf("%d calls, want 3", len(hits))
	}
	for i, h := range hits {
		if h.run != run || h.attempt != i+1 || h.key != hits[0].key || h.nominal != hits[0].nominal {
			t.Errorf("call %d: %+v", i+1, h)
		}
		if i > 0 && h.fence <= hits[i-1].fence {
			t.Errorf("P6: fence %d after %d", h.fence, hits[i-1].fence)
		}
	}
	// The second try's time is told when the first has failed.
	attempts := ended.list("attempts")
	for i, h := range hits[1:] {
		if failed := attempts[i].time(t, "ended_at"); h.at.Before(failed) {
			t.Errorf("attempt %d came before attempt %d had ended", i+2, i+1)
		}
	}
}

// Ten runs in one request become one batch of messages. Some fail once: the others are not called again for it.
func partialBatch(t *testing.T, f fixture) {
	fails := func(body string) bool { return strings.Contains(body, `"fails":true`) }
	p := f.target.answering("batch", func(_ int, h hit) int {
		if fails(h.body) && h.attempt == 1 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	name := f.stack.put(t, "batch", object{"target": p.get(), "retry": object{"max_attempts": 3, "initial": "1s"}})
	var requests []object
	for n := range 10 {
		requests = append(requests, object{"job": name, "payload": object{"n": n, "fails": n%4 == 1}})
	}
	for _, verdict := range f.stack.must(t, http.StatusOK, "POST", "/v1/runs/batch", object{"runs": requests}).list("items") {
		if ended := f.stack.ended(t, verdict.text("id")); ended.text("state") != "succeeded" {
			t.Errorf("ended as %v", ended)
		}
	}
	times := map[string]int{}
	for _, h := range p.seen() {
		times[h.body]++
	}
	if len(times) != 10 {
		t.Errorf("called with %v", times)
	}
	for body, n := range times {
		if want := map[bool]int{false: 1, true: 2}[fails(body)]; n != want {
			t.Errorf("%s was called %d times, want %d", body, n, want)
		}
	}
}

// A run whose attempts are spent is dead, one that failed for good is failed; both are found, and both can be redriven.
func deadLetters(t *testing.T, f fixture) {
	mended := make(chan struct{})
	p := f.target.answering("dead", func(_ int, h hit) int {
		select {
		case <-mended:
			return http.StatusOK
		default:
		}
		if strings.Contains(h.body, "for good") {
			return http.StatusBadRequest
		}
		return http.StatusInternalServerError
	})
	name := f.stack.put(t, "dead", object{"target": p.get(), "retry": object{"max_attempts": 2, "initial": "1s"}})
	spent := f.stack.ended(t, f.stack.start(t, name, object{"payload": "spent"}))
	failed := f.stack.ended(t, f.stack.start(t, name, object{"payload": "for good"}))
	if spent.text("state") != "dead" || spent.number("attempt") != 2 || failed.text("state") != "failed" || failed.number("attempt") != 1 {
		t.Fatalf("ended as %v and %v", spent, failed)
	}
	found := map[string]bool{}
	for _, letter := range f.stack.must(t, http.StatusOK, "GET", "/v1/dead-letters?job="+name, nil).list("items") {
		found[letter.text("id")] = true
	}
	if len(found) != 2 || !found[spent.text("id")] || !found[failed.text("id")] {
		t.Fatalf("dead letters: %v", found)
	}
	close(mended)
	redriven := f.stack.must(t, http.StatusOK, "POST", "/v1/dead-letters/redrive", object{"runs": []string{spent.text("id"), failed.text("id")}})
	if n := len(redriven.list("items")); n != 2 {
		t.Fatalf("redriven: %v", redriven)
	}
	for _, was := range []object{spent, failed} {
		ended := f.stack.ended(t, was.text("id"))
		if ended.text("state") != "succeeded" || ended.number("fence") <= was.number("fence") {
			t.Errorf("after the redrive: %v", ended)
		}
	}
	if left := f.stack.must(t, http.StatusOK, "GET", "/v1/dead-letters?job="+name, nil).list("items"); len(left) != 0 {
		t.Errorf("dead letters after the redrive: %v", left)
	}
}

// What is no message of Belfry's is kept where an operator finds it, and counted; it stops nobody.
func unreadable(t *testing.T, f fixture) {
	f.stack.send(t, "dead", "made by nobody")
	f.stack.send(t, "default-high", "made by nobody, too")
	p := f.target.at("beside")
	name := f.stack.put(t, "beside", object{"target": p.get(), "priority": "high"})
	if ended := f.stack.ended(t, f.stack.start(t, name, object{})); ended.text("state") != "succeeded" {
		t.Errorf("a run beside it ended as %v", ended)
	}
}

func atMostOnce(t *testing.T, f fixture) {
	p := f.target.answering("once", func(nth int, _ hit) int {
		if nth == 1 {
			return hangUp // the call came, and nobody knows what it did
		}
		return http.StatusOK
	})
	name := f.stack.put(t, "once", object{"target": p.get(), "guarantee": "at_most_once"})
	run := f.stack.start(t, name, object{})
	if ended := f.stack.ended(t, run); ended.text("state") != "unknown" {
		t.Fatalf("ended as %v", ended)
	}
	if hits := p.seen(); len(hits) != 1 || hits[0].key != "" {
		t.Fatalf("called with %+v", hits)
	}
	at := "/v1/runs/" + url.PathEscape(run) + "/retry"
	if refused := f.stack.must(t, http.StatusConflict, "POST", at, object{}); refused.text("code") != "needs_force" {
		t.Errorf("a retry without consent: %v", refused)
	}
	f.stack.must(t, http.StatusOK, "POST", at, object{"force": true})
	f.stack.until(t, run, "succeeded")
	if n := len(p.seen()); n != 2 {
		t.Errorf("%d calls, want one more", n)
	}
}

// While runs are at work, the stack is updated, which begins its functions anew. Those that may be called again end well; those
// that may not are called once.
func update(t *testing.T, f fixture) {
	going := make(chan struct{})
	p := f.target.answering("update", func(int, hit) int {
		<-going
		return http.StatusOK
	})
	defer func() {
		select {
		case <-going:
		default:
			close(going)
		}
	}()
	often := f.stack.put(t, "update", object{"target": p.get(), "timeout": "2m"})
	once := f.stack.put(t, "update-once", object{"target": p.get(), "timeout": "2m", "guarantee": "at_most_once"})
	runs := map[string]bool{} // whether at most once
	// In one request, so that they come in few batches: only some functions work at once.
	requests := []object{{"job": often}, {"job": once}, {"job": often}, {"job": once}, {"job": often}, {"job": once}}
	for i, verdict := range f.stack.must(t, http.StatusOK, "POST", "/v1/runs/batch", object{"runs": requests}).list("items") {
		runs[verdict.text("id")] = i%2 == 1
	}
	p.wait(t, len(requests))
	// An emulator may kill the functions that it updates. Until a worker has renewed its lease once, nobody asks after it for minutes:
	// the sweep finds its runs. From then on their messages come back soon.
	<-time.After(12 * time.Second)
	f.stack.deploy(t, "LogLevel=debug")
	close(going)
	for run, onlyOnce := range runs {
		ended := f.stack.ended(t, run)
		if state := ended.text("state"); state != "succeeded" && (!onlyOnce || state != "unknown") {
			t.Errorf("ended as %v", ended)
		}
	}
	times := map[string]int{}
	for _, h := range p.seen() {
		times[h.run]++
	}
	for run, onlyOnce := range runs {
		if onlyOnce && times[run] > 1 {
			t.Errorf("P5: run %s was called %d times", run, times[run])
		}
	}
	t.Logf("calls by run: %v", times)
}

// text shows a value as JSON.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(out)
}
