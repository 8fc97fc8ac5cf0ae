//go:build emulators

package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// line is the network between the engine and the emulator. A hook sees each request and says what befalls it.
type line struct {
	hook func(operation string) fault
	land chan struct{} // closed when what is tardy may land

	mu    sync.Mutex
	sent  map[string]int
	late  sync.WaitGroup
	inner http.Client
}

type fault int

const (
	none    fault = iota
	lost          // done, and the answer never comes
	cut           // done, and the connection breaks in the answer
	failed        // done, and the answer is a 500
	refused       // not done: a 500
	slow          // not done: throttled
	tardy         // the connection breaks, and it is done when the test says so
)

func (l *line) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	l.mu.Lock()
	if l.sent == nil {
		l.sent = map[string]int{}
	}
	l.sent[operation]++
	l.mu.Unlock()
	switch f := l.hook(operation); f {
	case none:
		return l.inner.Do(r)
	case refused:
		return refuses(500, "InternalServerError").response(), nil
	case slow:
		return refuses(400, "ThrottlingException").response(), nil
	case tardy:
		later := r.Clone(context.WithoutCancel(r.Context()))
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		later.Body = io.NopCloser(strings.NewReader(string(raw)))
		l.late.Go(func() {
			<-l.land
			if answer, err := l.inner.Do(later); err == nil {
				answer.Body.Close()
			}
		})
		return nil, errBroken
	default:
		answer, err := l.inner.Do(r)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		if f == failed {
			return refuses(500, "InternalServerError").response(), nil
		}
		if f == lost {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return nil, errBroken
	}
}

func (l *line) count(operation string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[operation]
}

// patient is what an emulator that has just begun needs now and then.
const patient = 2 * time.Second

// onLine opens a store whose requests may take so long.
func onLine(t *testing.T, l *line, timeout time.Duration) *dynamo.Store {
	t.Helper()
	cfg := emulated(t, nil)
	cfg.AWS.HTTPClient, cfg.Timeout = l, timeout
	hook := l.hook
	l.hook = func(string) fault { return none }
	s := open(t, cfg)
	l.hook = hook
	return s
}

// TestFault01_ALostAnswerIsNoConflict: a write is done and its answer lost in each way. The engine sends it once and says that
// it does not know; the same write sent again is a success, at the version that the first try gave, and nothing was written twice.
func TestFault01_ALostAnswerIsNoConflict(t *testing.T) {
	for name, f := range map[string]fault{"no answer": lost, "a cut connection": cut, "a server's error": failed} {
		for _, several := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", several: ", several), func(t *testing.T) {
				t.Parallel()
				faults, operation := 1, "PutItem"
				if several {
					operation = "TransactWriteItems"
				}
				l := &line{}
				l.hook = func(asked string) fault {
					if asked == operation && faults > 0 {
						faults--
						return f
					}
					return none
				}
				s := onLine(t, l, patient)
				ops := []store.Op{putAt(store.Absent)}
				if several {
					other := putAt(store.Any)
					other.Key.Sort = "t"
					ops = append(ops, other)
				}
				if _, err := s.Write(t.Context(), ops...); !errors.Is(err, store.ErrUnknown) || l.count(operation) != 1 {
					t.Fatalf("the write whose answer was lost gave %v after %d requests, want ErrUnknown after one", err, l.count(operation))
				}
				for range 2 {
					versions, err := s.Write(t.Context(), ops...)
					if err != nil || versions[0] != 1 || versions[len(ops)-1] != 1 {
						t.Fatalf("sent again it gave %v, %v", versions, err)
					}
				}
				if items, err := s.Get(t.Context(), at); err != nil || items[0].Version != 1 {
					t.Errorf("what stands is %v, %v", items, err)
				}
			})
		}
	}
}

// TestFault02_AWriteThatLandsLaterIsRefused: a write whose connection broke lands when somebody has written since.
func TestFault02_AWriteThatLandsLaterIsRefused(t *testing.T) {
	first := true
	l := &line{land: make(chan struct{})}
	l.hook = func(operation string) fault {
		if operation == "PutItem" && first {
			first = false
			return tardy
		}
		return none
	}
	s := onLine(t, l, patient)
	land := sync.OnceFunc(func() { close(l.land); l.late.Wait() })
	t.Cleanup(land)
	if _, err := s.Write(t.Context(), putAt(store.Absent)); !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("the write whose connection broke gave %v", err)
	}
	winner := putAt(store.Absent)
	winner.Value, winner.Attempt = []byte("winner"), 8
	if _, err := s.Write(t.Context(), winner); err != nil {
		t.Fatal(err)
	}
	land()
	if items, err := s.Get(t.Context(), at); err != nil || string(items[0].Value) != "winner" || items[0].Version != 1 {
		t.Errorf("what stands is %+v, %v", items, err)
	}
	if _, err := s.Write(t.Context(), putAt(store.Absent)); store.AsConflict(err) == nil || string(store.AsConflict(err).Standing.Value) != "winner" {
		t.Errorf("the first write sent again gave %v", err)
	}
}

// TestCountersOnABadLine grows counters over a line on which one request in four goes wrong in some way. Each caller sends a write
// whose outcome is unknown again until it knows; in the end the counters hold every success, once.
func TestCountersOnABadLine(t *testing.T) {
	const callers, each, counters = 4, 25, 2
	random := rand.New(rand.NewPCG(11, 11))
	var mu sync.Mutex
	seen := map[fault]int{}
	l := &line{}
	l.hook = func(string) fault {
		mu.Lock()
		defer mu.Unlock()
		f := none
		if random.IntN(4) == 0 {
			f = []fault{lost, cut, failed, refused, slow, slow}[random.IntN(6)]
		}
		seen[f]++
		return f
	}
	s := onLine(t, l, 200*time.Millisecond)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for n := range each {
				if err := grow(t.Context(), s, store.Key{Partition: "p", Sort: fmt.Sprint(n % counters)}, uint64(1+caller*1000+n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	l.hook = func(string) fault { return none }
	sum, versions := 0, uint64(0)
	for n := range counters {
		items, err := s.Get(t.Context(), store.Key{Partition: "p", Sort: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(items[0].Value), " ")
		held, _ := strconv.Atoi(text)
		sum, versions = sum+held, versions+items[0].Version
	}
	if sum != callers*each || versions != callers*each {
		t.Errorf("%d increments were counted as %d, in %d versions", callers*each, sum, versions)
	}
	for _, f := range []fault{lost, cut, failed, refused, slow} {
		if seen[f] == 0 {
			t.Errorf("fault %d never came: nothing was tested of it", f)
		}
	}
}

// grow adds one to a counter. The sum is exact only if ErrUnknown and own attempts mean what the port says: a success that was
// called a conflict would be counted twice, a conflict that was called a success not at all. An own write that somebody has
// written over can't be known by its attempt; the value holds who was counted, so that a caller looks there.
func grow(ctx context.Context, s *dynamo.Store, k store.Key, id uint64) error {
	mine := fmt.Sprintf(",%d;", id)
	for range 200 {
		items, err := s.Get(ctx, k)
		if err != nil {
			continue
		}
		held, by, _ := strings.Cut(string(items[0].Value), " ")
		if strings.Contains(by, mine) {
			return nil
		}
		n, _ := strconv.Atoi(held)
		op := store.Op{
			Kind: store.Put, Key: k, If: store.At(items[0]), Attempt: id, Value: fmt.Appendf(nil, "%d %s%s", n+1, by, mine),
		}
		for err = store.ErrUnknown; errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrThrottled); {
			_, err = s.Write(ctx, op)
		}
		if err == nil {
			return nil
		}
		if store.AsConflict(err) == nil {
			return err
		}
	}
	return fmt.Errorf("counter %s was never grown by %d", k, id)
}
