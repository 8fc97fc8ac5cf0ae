package target_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// A receiver that refuses calls of an attempt which is no longer the newest. A real one keeps the highest fence of a run
// where it keeps the effect, and compares and writes both in one transaction.
func Example_fence() {
	var mu sync.Mutex
	highest := map[string]uint64{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := r.Header.Get("Belfry-Run")
		fence, err := strconv.ParseUint(r.Header.Get("Belfry-Fence"), 10, 64)
		if err != nil {
			http.Error(w, "Belfry-Fence is no number", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if fence < highest[run] {
			http.Error(w, "a newer attempt was here", http.StatusPreconditionFailed)
			return
		}
		highest[run] = fence
		_, _ = fmt.Fprint(w, "done")
	}))
	defer receiver.Close()

	set, err := target.New(target.Config{Now: time.Now, Addresses: target.AddressPolicy{AllowLoopback: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	spec := target.Spec{HTTP: &target.HTTP{URL: receiver.URL}}
	for _, fence := range []uint64{5, 7, 5} {
		result, err := set.Call(context.Background(), spec, target.Call{Run: "r1", Job: "report", Attempt: 1, Fence: fence})
		fmt.Printf("fence %d: %s %v\n", fence, result.Body, err)
	}
	// Output:
	// fence 5: done <nil>
	// fence 7: done <nil>
	// fence 5:  http_status: answered 412 Precondition Failed: a newer attempt was here
}

func ExamplePermanent() {
	var handlers target.Registry
	err := handlers.Register("charge", func(_ context.Context, call target.Call) (target.Result, error) {
		if len(call.Payload) == 0 {
			return target.Result{}, target.Permanent(errors.New("no account named"))
		}
		return target.Result{}, target.RetryAfter(time.Minute, errors.New("the bank is closed"))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := target.New(target.Config{Now: time.Now, Handlers: &handlers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	for _, payload := range []string{"", "{}"} {
		_, err := set.Call(context.Background(), target.Spec{Handler: &target.Handler{Name: "charge"}}, target.Call{Payload: []byte(payload)})
		var failure *target.Failure
		if errors.As(err, &failure) {
			fmt.Println(failure.Message, failure.Permanent, failure.RetryAfter)
		}
	}
	// Output:
	// no account named true 0s
	// the bank is closed false 1m0s
}
