package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// TestOutcomes holds that a write is sent once and not again unless it was refused, and that its error says what is true: nothing
// was written, or nobody knows.
func TestOutcomes(t *testing.T) {
	const many = 6
	single := []store.Op{putAt(store.Version(1))}
	second := putAt(store.Any)
	second.Key.Sort = "t"
	second.Kind = store.Delete
	both := []store.Op{putAt(store.Version(1)), second}
	third := second
	third.Kind, third.If = store.Check, store.Version(7)
	checks := []store.Op{putAt(store.Absent), third}
	for name, c := range map[string]struct {
		ops    []store.Op
		answer func(string, int, map[string]any) (*reply, error)
		want   error
		sent   int
	}{
		"throttled by the table":      {single, always(400, "ProvisionedThroughputExceededException"), store.ErrThrottled, many},
		"throttled by the account":    {single, always(400, "ThrottlingException"), store.ErrThrottled, many},
		"in the way of a transaction": {single, always(400, "TransactionConflictException"), store.ErrThrottled, many},
		"a transaction in the way of another": {both,
			always(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"None"}]`),
			store.ErrThrottled, many},
		"a check in the way of another's, and then not": {checks, func(_ string, n int, _ map[string]any) (*reply, error) {
			if n == 1 {
				return refuses(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]`), nil
			}
			return says(200, `{}`), nil
		}, nil, 2},
		"a check in the way of others for long": {checks,
			always(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]`),
			store.ErrThrottled, many},
		"a transaction throttled in part": {both,
			always(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"None"},{"Code":"ThrottlingError"}]`),
			store.ErrThrottled, many},
		"a server's error":                  {single, always(500, "InternalServerError"), store.ErrUnknown, 1},
		"a server's error in a transaction": {both, always(500, "InternalServerError"), store.ErrUnknown, 1},
		"an answer of nobody": {single, func(string, int, map[string]any) (*reply, error) {
			return says(503, "<html>"), nil
		}, store.ErrUnknown, 1},
		"a cut connection": {single, func(string, int, map[string]any) (*reply, error) {
			return nil, errBroken
		}, store.ErrUnknown, 1},
		"half an answer": {both, func(string, int, map[string]any) (*reply, error) {
			return says(200, `{"ConsumedCapacity":[{"TableN`), nil
		}, store.ErrUnknown, 1},
		"no answer": {single, func(string, int, map[string]any) (*reply, error) { return nil, nil }, store.ErrUnknown, 1},
		"refused once for load": {single, func(_ string, n int, _ map[string]any) (*reply, error) {
			if n == 1 {
				return refuses(400, "ThrottlingException"), nil
			}
			return says(200, `{}`), nil
		}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{answer: c.answer}
				s := opened(t, w)
				operation := "PutItem"
				if len(c.ops) > 1 {
					operation = "TransactWriteItems"
				}
				_, err := s.Write(t.Context(), c.ops...)
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("write gave %v, want %v", err, c.want)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the engine's own limit passes for the caller's: %v", err)
				}
				if n := w.count(operation); n != c.sent {
					t.Errorf("%s was sent %d times, want %d", operation, n, c.sent)
				}
				if len(c.ops) > 1 {
					return
				}
				verdicts, err := s.WriteEach(t.Context(), c.ops...)
				if err != nil || !errors.Is(verdicts[0].Err, c.want) {
					t.Errorf("write each gave %+v, %v, want the verdict %v", verdicts, err, c.want)
				}
			})
		})
	}
}

// TestThrottlesSayWhatIsShort holds that a throttle tells the partition, the table and the account apart.
func TestThrottlesSayWhatIsShort(t *testing.T) {
	for reason, want := range map[string]string{
		"TableWriteKeyRangeThroughputExceeded":    "too much for one partition",
		"TableWriteAccountLimitExceeded":          "the account's quota",
		"TableWriteMaxOnDemandThroughputExceeded": "the table's own maximum",
		"TableWriteProvisionedThroughputExceeded": "more than the table has provisioned",
	} {
		for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
			synctest.Test(t, func(t *testing.T) {
				s := opened(t, &wire{answer: always(400, code, `,"ThrottlingReasons":[{"reason":"`+reason+`"}],"throttlingReasons":[{"reason":"`+reason+`"}]`)})
				_, err := s.Write(t.Context(), putAt(store.Version(1)))
				if !errors.Is(err, store.ErrThrottled) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s for %s gave %q, want %q in it", code, reason, err, want)
				}
			})
		}
	}
}

// TestReadsAreTriedAgain holds that what may pass is waited for, within bounds.
func TestReadsAreTriedAgain(t *testing.T) {
	for name, bad := range map[string]func() (*reply, error){
		"throttled":        func() (*reply, error) { return refuses(400, "ThrottlingException"), nil },
		"a server's error": func() (*reply, error) { return refuses(500, "InternalServerError"), nil },
		"a cut connection": func() (*reply, error) { return nil, errBroken },
		"no answer":        func() (*reply, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mended := false
				w := &wire{answer: func(operation string, n int, _ map[string]any) (*reply, error) {
					if !mended && n%3 != 0 {
						return bad()
					}
					if operation == "Query" {
						return says(200, `{"Items":[`+record(4, 1, "x")+`]}`), nil
					}
					return says(200, `{"Item":`+record(4, 1, "x")+`}`), nil
				}}
				s := opened(t, w)
				if items, err := s.Get(t.Context(), at); err != nil || items[0].Version != 4 {
					t.Errorf("get gave %v, %v", items, err)
				}
				if page, err := s.Query(t.Context(), store.Range{Partition: "p"}); err != nil || len(page.Items) != 1 {
					t.Errorf("query gave %v, %v", page, err)
				}
			})
		})
		t.Run(name+" for ever", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := opened(t, &wire{answer: func(string, int, map[string]any) (*reply, error) { return bad() }})
				var err error
				if took := during(func() { _, err = s.Get(t.Context(), at) }); err == nil || took > 35*time.Second {
					t.Errorf("get gave %v after %s", err, took)
				}
				if errors.Is(err, store.ErrThrottled) != (name == "throttled") || errors.Is(err, store.ErrUnknown) {
					t.Errorf("get gave %v", err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if took := during(func() { _, err = s.Get(ctx, at) }); err == nil || took > 3*time.Second {
					t.Errorf("get with 3 s to live gave %v after %s", err, took)
				}
			})
		})
	}
}

// TestWhatTheCallerGaveUp holds that a write obeys its context, and that the context's end is told as such.
func TestWhatTheCallerGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opened(t, &wire{answer: func(string, int, map[string]any) (*reply, error) { return nil, nil }})
		for name, call := range map[string]func(context.Context) error{
			"write": func(ctx context.Context) error { _, err := s.Write(ctx, putAt(store.Absent)); return err },
			"each":  func(ctx context.Context) error { _, err := s.WriteEach(ctx, putAt(store.Absent)); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			took := during(func() {
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v, want the context's end", name, err)
				}
			})
			if cancel(); took != time.Second {
				t.Errorf("%s took %s", name, took)
			}
		}
	})
}

// TestFault01_ARefusalThatHidesTheOwnTry: a transaction that meets itself, done, and another's transaction as well, does not
// show in its refusal that it was done. It is asked again until it does.
func TestFault01_ARefusalThatHidesTheOwnTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{answer: func(_ string, n int, _ map[string]any) (*reply, error) {
			own := `{"Code":"TransactionConflict"}`
			if n == 2 {
				own = `{"Code":"ConditionalCheckFailed","Item":` + record(2, 7, "v") + `}`
			}
			return refuses(400, "TransactionCanceledException", `,"CancellationReasons":[`+own+`,{"Code":"ConditionalCheckFailed"}]`), nil
		}}
		gone := putAt(store.Version(3))
		gone.Kind, gone.Key.Sort = store.Delete, "t"
		versions, err := opened(t, w).Write(t.Context(), putAt(store.Version(1)), gone)
		if err != nil || versions[0] != 2 || versions[1] != 0 {
			t.Errorf("the write that was done gave %v, %v", versions, err)
		}
	})
}

// TestOvertakenPuts: in a transaction a put under Any holds the version that it read. When somebody overtakes it, it goes on from
// what was handed back, and gives up in bounded time.
func TestOvertakenPuts(t *testing.T) {
	run := func(t *testing.T, overtaken int) (versions []uint64, w *wire, err error) {
		synctest.Test(t, func(t *testing.T) {
			w = &wire{answer: func(operation string, n int, _ map[string]any) (*reply, error) {
				switch {
				case operation == "GetItem":
					return says(200, `{"Item":`+record(5, 1, "x")+`}`), nil
				case n <= overtaken:
					return refuses(400, "TransactionCanceledException",
						`,"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Item":`+record(5+n, 1, "y")+`}]`), nil
				default:
					return says(200, `{}`), nil
				}
			}}
			other := putAt(store.Absent)
			other.Key.Sort = "t"
			versions, err = opened(t, w).Write(t.Context(), other, putAt(store.Any))
		})
		return versions, w, err
	}
	if versions, w, err := run(t, 2); err != nil || versions[0] != 1 || versions[1] != 8 || w.count("GetItem") != 1 {
		t.Errorf("overtaken twice: %v, %v after %d reads, want versions 1 and 8 after one", versions, err, w.count("GetItem"))
	}
	if _, _, err := run(t, 1000); !errors.Is(err, store.ErrThrottled) {
		t.Errorf("overtaken for ever: %v, want ErrThrottled", err)
	}
}

// TestUnprocessedKeys holds that what a batch leaves out is asked again, and that a batch that brings nothing any more ends.
func TestUnprocessedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := false
		w := &wire{answer: func(_ string, _ int, body map[string]any) (*reply, error) {
			keys := body["RequestItems"].(map[string]any)["belfry"].(map[string]any)["Keys"].([]any)
			done := keys[:1]
			if stuck {
				done = nil
			}
			items, left := []any{}, []any{}
			for i, k := range keys {
				if i >= len(done) {
					left = append(left, k)
					continue
				}
				item := k.(map[string]any)
				item["n"] = map[string]any{"N": "3"}
				items = append(items, item)
			}
			return says(200, encode(t, map[string]any{
				"Responses":       map[string]any{"belfry": items},
				"UnprocessedKeys": map[string]any{"belfry": map[string]any{"Keys": left}},
			})), nil
		}}
		s := opened(t, w)
		keys := make([]store.Key, 10)
		for i := range keys {
			keys[i] = store.Key{Partition: "p", Sort: string(rune('a' + i))}
		}
		items, err := s.Get(t.Context(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range items {
			if item.Key != keys[i] || item.Version != 3 {
				t.Errorf("place %d: %+v", i, item)
			}
		}
		stuck = true
		if _, err := s.Get(t.Context(), keys...); !errors.Is(err, store.ErrThrottled) {
			t.Errorf("a batch of which nothing is answered gave %v, want ErrThrottled", err)
		}
	})
}

// TestOpenSaysWhatToDo holds that what is wrong with the table, the rights or the address is one line that names it.
func TestOpenSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		answer *reply
		err    error
		want   string
	}{
		"no table":      {answer: refuses(400, "ResourceNotFoundException"), want: `there is no table "belfry" in eu-central-1: deploy the template there, make it by "belfry table create"`},
		"no rights":     {answer: refuses(400, "AccessDeniedException"), want: `the credentials lack a right: by the test`},
		"wrong secret":  {answer: refuses(400, "InvalidSignatureException"), want: `AWS refuses the credentials`},
		"another table": {answer: refuses(400, "ValidationException"), want: `Belfry's tables have the keys p and s, both binary`},
		"wrong address": {err: errBroken, want: `table "belfry" in eu-central-1 does not answer: see that it can be reached from here: `},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := dynamo.Open(t.Context(), config(&wire{opened: true, answer: func(string, int, map[string]any) (*reply, error) {
					return c.answer, c.err
				}}))
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want one line with %q", err, c.want)
				}
			})
		})
	}
	for want, change := range map[string]func(*dynamo.Config){
		"no table was named":      func(c *dynamo.Config) { c.Table = "" },
		"no region":               func(c *dynamo.Config) { c.AWS.Region = "" },
		"no AWS credentials were": func(c *dynamo.Config) { c.AWS.Credentials = nil },
		"no AWS credentials: set AWS_PROFILE": func(c *dynamo.Config) {
			c.AWS.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, errors.New("by the test")
			})
		},
		`the endpoint "127.0.0.1:8000" is no address`: func(c *dynamo.Config) { c.Endpoint = "127.0.0.1:8000" },
	} {
		cfg := config(&wire{})
		change(&cfg)
		if _, err := dynamo.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
