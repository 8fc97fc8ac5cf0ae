package target_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

func TestACodeIsReadOffTheText(t *testing.T) {
	for text, want := range map[string]string{
		"timeout: the attempt ran into its timeout":               "timeout",
		"http_status: answered 503 Service Unavailable: away":     "http_status:503",
		"http_status: answered 599":                               "http_status:599",
		"http_status: answered 50…":                               "http_status",
		"http_status: said 503":                                   "http_status",
		"exit: exit code 3: no such file":                         "exit:3",
		"exit: exit code 255":                                     "exit:255",
		"exit: exit code -1":                                      "exit",
		"handler: no_stock: gone":                                 "handler",
		"handler:no_stock: gone":                                  "handler:no_stock",
		"handler:" + strings.Repeat("x", 29) + ": gone":           "",
		"function: KeyError: 'id'":                                "function:KeyError",
		"function: com.example.Empty$1: none":                     "function:com.example.Empty$1",
		"function: it threw":                                      "function",
		"function: no such thing: there":                          "function",
		"result_too_large: the result is larger than the 256 KiB": "result_too_large",
		"its_own: as a worker in another language may say":        "its_own",
		"lease ran out":                                           "",
		"Connection refused: there":                               "",
		"":                                                        "",
	} {
		if got := target.CodeOf(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// A handler's code stands in the text of its failure, whatever its error is wrapped in and marked with. Its kind is that of any error of a handler.
func TestAHandlerTellsItsFailuresApart(t *testing.T) {
	var handlers target.Registry
	gone := errors.New("gone")
	for name, err := range map[string]error{
		"plain": gone, "coded": target.WithCode("no_stock", gone), "wrapped": fmt.Errorf("ship: %w", target.WithCode("no_stock", gone)),
		"permanent": target.Permanent(target.WithCode("no_stock", gone)), "around": target.WithCode("no_stock", target.RetryAfter(time.Minute, gone)), "wrong": target.WithCode("no stock", gone),
	} {
		if problem := handlers.Register(name, func(context.Context, target.Call) (target.Result, error) { return target.Result{}, err }); problem != nil {
			t.Fatal(problem)
		}
	}
	set, err := target.New(target.Config{Now: time.Now, Handlers: &handlers})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain": "handler", "coded": "handler:no_stock", "wrapped": "handler:no_stock", "permanent": "handler:no_stock", "around": "handler:no_stock", "wrong": "handler"} {
		_, err := set.Call(t.Context(), target.Spec{Handler: &target.Handler{Name: name}}, target.Call{})
		var f *target.Failure
		if !errors.As(err, &f) || f.Kind != target.KindHandler || target.CodeOf(f.Error()) != want || target.KindOf(f.Error()) != target.KindHandler || !errors.Is(err, gone) {
			t.Errorf("%s: %v, want code %s", name, err, want)
		} else if f.Permanent != (name == "permanent") || (f.RetryAfter != 0) != (name == "around") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if target.WithCode("x", nil) != nil {
		t.Error("a code makes an error of none")
	}
}
