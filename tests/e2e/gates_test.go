//go:build emulators && deep

package e2e

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"
)

func init() { uses["G1_G2_gates_hold_over_all_functions"] = gatesHold }

// Runs of two jobs pass a gate of each customer and one of all. However many functions work at once, never more are called than the gates let in, and all
// come through. Whoever comes to a gate that is closed waits there until it is opened.
func gatesHold(t *testing.T, f fixture) {
	const limit, each, asked = 3, 2, 16
	var mu sync.Mutex
	inside, most := map[string]int{}, map[string]int{}
	p := f.target.answering("gates", func(_ int, h hit) int {
		var of struct{ Customer string }
		if json.Unmarshal([]byte(h.body), &of) != nil {
			return http.StatusBadRequest
		}
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, who := range []string{"", of.Customer} {
				inside[who] += by
				most[who] = max(most[who], inside[who])
			}
		}
		count(1)
		<-time.After(300 * time.Millisecond) // in which others would come, if they were let in
		count(-1)
		return http.StatusOK
	})
	all, customer := "all-"+session, "customer-"+session
	for name, limit := range map[string]int{all: limit, customer: each} {
		f.stack.must(t, http.StatusCreated, "PUT", "/v1/gates/"+name, object{"limit": limit})
	}
	gates := []any{all, object{"gate": customer, "key": "${ .payload.customer }"}}
	jobs := []string{f.stack.put(t, "charge", object{"target": p.get(), "gates": gates}), f.stack.put(t, "refund", object{"target": p.get(), "gates": gates})}
	var runs []string
	for i := range asked {
		runs = append(runs, f.stack.start(t, jobs[i%2], object{"payload": object{"customer": []string{"acme", "acme", "other"}[i/2%3]}}))
	}
	for _, run := range runs {
		if ended := f.stack.ended(t, run); ended.text("state") != "succeeded" {
			t.Errorf("ended as %v", ended)
		}
	}
	mu.Lock()
	if most[""] > limit || most["acme"] > each || most["other"] > each {
		t.Errorf("at once were called %v, want %d in all and %d of each customer at most", most, limit, each)
	}
	t.Logf("at once were called %v", most)
	mu.Unlock()

	f.stack.must(t, http.StatusOK, "POST", "/v1/gates/"+customer+"/close", object{"reason": "they are down"})
	held := f.stack.start(t, jobs[0], object{"payload": object{"customer": "acme"}})
	if why := f.stack.until(t, held, "waiting").list("waiting"); len(why) != 1 || why[0].text("gate") != customer || why[0].text("key") != "acme" {
		t.Errorf("it waits: %v", why)
	}
	f.stack.must(t, http.StatusOK, "POST", "/v1/gates/"+customer+"/open", object{})
	if ended := f.stack.ended(t, held); ended.text("state") != "succeeded" {
		t.Errorf("behind the opened gate it ended as %v", ended)
	}
}
