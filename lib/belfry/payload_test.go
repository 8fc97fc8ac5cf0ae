package belfry

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
)

// seen is what a handler got and what became of its run.
type seen[T any] struct {
	payload T
	run     Run
}

// handed gives what handlers of T get of a payload of type P, by Enqueue, by EnqueueMany and by a schedule, and the results of runs
// that give their payloads back.
func handed[T, P any](t *testing.T, payload P) []seen[T] {
	t.Helper()
	var all []seen[T]
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		got := map[string]T{}
		Handle(b, "echo", func(_ context.Context, job *Job[T]) error {
			got[job.Run] = job.Payload
			job.Result = job.Payload
			return nil
		})
		start(t, b)
		ids := []string{enqueue(t, b, "echo", payload).ID}
		synctest.Wait()
		many, err := EnqueueMany(t.Context(), b, "echo", Order[P]{Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, many[0].Run.ID)
		synctest.Wait()
		if err := b.Schedule(t.Context(), "echo", "@every 1m", Payload(payload)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for r, err := range b.Runs(t.Context(), "echo") {
			if err != nil {
				t.Fatal(err)
			}
			if r.ID != ids[0] && r.ID != ids[1] {
				ids = append(ids, r.ID)
			}
		}
		if len(ids) != 3 {
			t.Fatalf("%d runs, want 3", len(ids))
		}
		for _, id := range ids {
			all = append(all, seen[T]{got[id], read(t, b, id)})
		}
	})
	return all
}

// isNil holds that a payload which is nil reaches its handler as nil, and that its run succeeds.
func isNil[T, P any](t *testing.T, payload P, is func(T) bool) {
	t.Helper()
	for i, s := range handed[T](t, payload) {
		if s.run.State != Succeeded || !is(s.payload) {
			t.Errorf("%d: %T(%v) gives %#v, and %+v", i, payload, payload, s.payload, s.run)
		}
	}
}

func TestNilIsAPayload(t *testing.T) {
	null := func(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
	isNil[any](t, any(nil), func(v any) bool { return v == nil })
	isNil[any](t, (*mail)(nil), func(v any) bool { return v == nil })
	isNil[*mail](t, any(nil), func(v *mail) bool { return v == nil })
	isNil[*mail](t, (*mail)(nil), func(v *mail) bool { return v == nil })
	isNil[map[string]any](t, any(nil), func(v map[string]any) bool { return v == nil })
	isNil[map[string]any](t, map[string]any(nil), func(v map[string]any) bool { return v == nil })
	isNil[[]string](t, any(nil), func(v []string) bool { return v == nil })
	isNil[[]string](t, []string(nil), func(v []string) bool { return v == nil })
	isNil[[]byte](t, []byte(nil), func(v []byte) bool { return v == nil })
	isNil[json.RawMessage](t, any(nil), null)
	isNil[json.RawMessage](t, json.RawMessage(nil), null)
	isNil[any](t, json.RawMessage(nil), func(v any) bool { return v == nil })
	isNil[struct{}](t, struct{}{}, func(struct{}) bool { return true })
	isNil[*struct{}](t, &struct{}{}, func(v *struct{}) bool { return v != nil })
}

// What cannot be nil is not asked for with one.
func TestNilIsNoPayloadOfAValue(t *testing.T) {
	b := open(t, "memory:")
	Handle(b, "mail", func(context.Context, *Job[mail]) error { return nil })
	Handle(b, "number", func(context.Context, *Job[int]) error { return nil })
	for _, name := range []string{"mail", "number"} {
		if _, err := Enqueue[any](t.Context(), b, name, nil); !HasCode(err, CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := EnqueueMany(t.Context(), b, name, Order[any]{}); !HasCode(err, CodeInvalid) {
			t.Errorf("%s, many: %v", name, err)
		}
	}
}

func TestNilIsAPayloadElsewhere(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	b := open(t, address, Token(token), RemoteQueue("go"))
	got := make(chan any, 2)
	Handle(b, "any", func(_ context.Context, job *Job[any]) error {
		got <- job.Payload
		job.Result = (*mail)(nil)
		return nil
	})
	start(t, b)
	r := enqueue[any](t, b, "any", nil)
	if v := <-got; v != nil {
		t.Errorf("got %#v", v)
	}
	if done := wait(t, b, r.ID); done.State != Succeeded || string(done.Result) != "null" {
		t.Errorf("ended as %+v", done)
	}
	if _, err := EnqueueMany(t.Context(), b, "any", Order[any]{}); err != nil {
		t.Error(err)
	}
	if v := <-got; v != nil {
		t.Errorf("got %#v", v)
	}
}

// keeps holds that a payload and the result made of it are the same text.
func keeps[T any](t *testing.T, text string) {
	t.Helper()
	var payload T
	if err := json.Unmarshal([]byte(text), &payload); err != nil {
		t.Fatal(err)
	}
	for i, s := range handed[T](t, payload) {
		if s.run.State != Succeeded || string(s.run.Result) != text {
			t.Errorf("%d: as a %T %s gives %s, and %+v", i, payload, text, s.run.Result, s.run)
		}
	}
}

// Every digit reaches the handlers and comes back in the results, of the types that the documents name.
func TestDigitsOfPayloadsAreKept(t *testing.T) {
	const odd, most = `{"n":9007199254740993}`, `{"n":18446744073709551615}`
	keeps[json.RawMessage](t, `{"n":123456789012345678901234567890.10}`)
	keeps[map[string]json.RawMessage](t, odd)
	keeps[map[string]json.Number](t, `{"n":123456789012345678901234567890.10}`)
	keeps[map[string]int64](t, odd)
	keeps[map[string]uint64](t, most)
	keeps[struct {
		N int64 `json:"n"`
	}](t, odd)
	keeps[struct {
		N *json.Number `json:"n"`
	}](t, most)
	keeps[uint64](t, `18446744073709551615`)
	keeps[[]int64](t, `[9007199254740993,-9007199254740993]`)

	for _, s := range handed[map[string]any](t, map[string]any{"n": int64(9007199254740992), "f": 0.5}) {
		if s.payload["n"] != 9007199254740992.0 || s.payload["f"] != 0.5 || string(s.run.Result) != `{"f":0.5,"n":9007199254740992}` {
			t.Errorf("as any: %#v, %s", s.payload, s.run.Result)
		}
	}
	// What any cannot hold is stored all the same.
	for _, s := range handed[json.RawMessage](t, json.RawMessage(odd)) {
		if string(s.payload) != odd {
			t.Errorf("stored as %s", s.payload)
		}
	}
}

// What JSON cannot carry as it is, is refused where it is given, instead of being changed on its way.
func TestTextThatJSONWouldChangeIsRefused(t *testing.T) {
	const bad = "ann\xff"
	for _, at := range []string{"embedded", "remote"} {
		b := open(t, "memory:")
		if at == "remote" {
			address, token := server(t, access.Read, access.Write, access.Run, access.Work)
			b = open(t, address, Token(token), RemoteQueue("go"))
		}
		ctx := t.Context()
		Handle(b, "mail", func(context.Context, *Job[mail]) error { return nil })
		Handle(b, "text", func(context.Context, *Job[string]) error { return nil })
		Handle(b, "raw", func(context.Context, *Job[json.RawMessage]) error { return nil })
		Handle(b, "any", func(context.Context, *Job[any]) error { return nil })
		ask := func(_ Run, err error) error { return err }
		asked := enqueue(t, b, "text", "x", Delay(time.Hour))
		for name, c := range map[string]struct {
			err  error
			says string
		}{
			"Field":     {ask(Enqueue(ctx, b, "mail", mail{To: bad})), "payload.to: "},
			"Whole":     {ask(Enqueue(ctx, b, "text", bad)), "payload"},
			"Entry":     {ask(Enqueue[any](ctx, b, "any", map[string]any{"a": []any{1, bad}})), "payload.a[1]: "},
			"Name":      {ask(Enqueue[any](ctx, b, "any", map[string]any{bad: 1})), "payload.ann?: "},
			"Surrogate": {ask(Enqueue(ctx, b, "raw", json.RawMessage(`{"a":"\ud800"}`))), `payload.a: got \ud800`},
			"Nested":    {ask(Enqueue[any](ctx, b, "any", []any{json.RawMessage(`"\udfff"`)})), `payload[0]: got \udfff`},
			"RawBytes":  {ask(Enqueue(ctx, b, "raw", json.RawMessage("\"\xff\""))), "payload: got "},
			"Schedule":  {b.Schedule(ctx, "mail", "@daily", Payload(mail{To: bad})), "payload.to: "},
			"Pause":     {b.Pause(ctx, "text", bad), "reason: "},
			"Cancel":    {b.Cancel(ctx, asked.ID, bad), "reason: "},
		} {
			if !HasCode(c.err, CodeInvalid) || !strings.Contains(c.err.Error(), c.says) {
				t.Errorf("%s, %s: %v", at, name, c.err)
			}
		}
		if _, err := EnqueueMany(ctx, b, "mail", Order[mail]{}, Order[mail]{Payload: mail{To: bad}}); !HasCode(err, CodeInvalid) {
			t.Errorf("%s: many: %v", at, err)
		}
		for _, text := range []string{"\ufffd", "é😀", `\ufffd`, `\ud800`} {
			if _, err := Enqueue(ctx, b, "text", text); err != nil {
				t.Errorf("%s: %q: %v", at, text, err)
			}
		}
	}
}

// A result that would be changed is none; one that is JSON already is kept to the byte.
func TestResultsAreKeptToTheByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "raw", func(_ context.Context, job *Job[string]) error { job.Result = json.RawMessage(job.Payload); return nil })
		Handle(b, "text", func(_ context.Context, job *Job[string]) error {
			job.Result = map[string]string{"a": job.Payload + "\xff"}
			return nil
		})
		start(t, b)
		const odd = `{"a":"\ud800","n":9007199254740993,"\udfff":"\ufffd"}`
		raw, text := enqueue(t, b, "raw", odd), enqueue(t, b, "text", "x")
		time.Sleep(time.Second)
		if got := read(t, b, raw.ID); string(got.Result) != odd {
			t.Errorf("kept %s", got.Result)
		}
		if got := read(t, b, text.ID); got.State != Failed || !strings.Contains(got.Error, "a: got") || !strings.Contains(got.Error, "UTF-8") {
			t.Errorf("ended as %+v", got)
		}
	})
}
