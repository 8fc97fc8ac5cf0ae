package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocdk "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// reads is a bucket whose reads go through a hook first.
type reads struct {
	driver.Bucket
	of     *gocdk.Bucket
	before func(key string) error
}

type content struct{ *gocdk.Reader }

func (c content) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: c.Size()}
}

func (reads) ErrorCode(err error) gcerrors.ErrorCode { return gcerrors.Code(err) }
func (reads) Close() error                           { return nil }

func (r reads) NewRangeReader(ctx context.Context, key string, from, most int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if err := r.before(key); err != nil {
		return nil, err
	}
	of, err := r.of.NewRangeReader(ctx, key, from, most, nil)
	return content{of}, err
}

// large ends a step with a result that lies in the bucket, which lets before see each read of one.
func (f *forked) large(path, result string, before func() error) run.Run {
	f.t.Helper()
	memory := memblob.OpenBucket(nil)
	key, err := blob.New(memory).Put(f.t.Context(), blob.Ref{Tenant: "default", Kind: blob.Result, ID: path, Expires: f.now.AddDate(1, 0, 0)}, []byte(result))
	if err != nil {
		f.t.Fatal(err)
	}
	f.Blobs = blob.New(gocdk.NewBucket(reads{of: memory, before: func(string) error { return before() }}))
	s := f.write(f.step(path).Start("worker", f.now.UnixMilli(), f.Lease))
	return f.write(s.Succeed(f.now.UnixMilli(), run.Ref{Blob: key, Type: "application/json"}, "", run.Limits{Retention: 24 * time.Hour}))
}

// evaluated is a run whose expressions are evaluated.
var evaluated = run.FireID("report", 0)

// Evaluations of one tenant take their turns in the order of their coming. Who has had one comes last: none is left out, however many others want.
func TestEvaluationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGated(t)
		var mu sync.Mutex // two of them have a turn at once
		var order []string
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			all.Go(func() {
				for range 2 {
					err := f.Evaluating(t.Context(), "default", evaluated, func(context.Context) error {
						mu.Lock()
						order = append(order, name)
						mu.Unlock()
						time.Sleep(time.Second)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if want := []string{"a", "b", "c", "d", "e", "a", "b", "c", "d", "e"}; !slices.Equal(order, want) {
			t.Errorf("they were let in as %v, want %v", order, want)
		}
	})
}

// A tenant of whom very many evaluations wait holds up another's by two at the most, which have the turns, and one that comes between two of the other's. Whoever
// waits for long is told of, one for all, and all waits are measured.
func TestEvaluationsAreFairToTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGated(t)
		var text strings.Builder
		f.Log = slog.New(slog.NewTextHandler(&text, nil))
		began := time.Now()
		f.Elapsed = func() time.Duration { return time.Since(began) }
		var all sync.WaitGroup
		evaluates := func(tenant string, of run.ID, most time.Duration) {
			since := time.Now()
			all.Go(func() {
				if err := f.Evaluating(t.Context(), tenant, of, func(context.Context) error { time.Sleep(4 * time.Second); return nil }); err != nil {
					t.Error(err)
				}
				if took := time.Since(since); most > 0 && took > most {
					t.Errorf("one of %s took %s, want %s at most", tenant, took, most)
				}
			})
			synctest.Wait()
		}
		for range 100 {
			evaluates("many", evaluated, 0)
		}
		time.Sleep(time.Second)
		evaluates("few", run.FireID("other", 0), 3*time.Second+4*time.Second)
		evaluates("few", run.FireID("other", 0), 3*time.Second+4*time.Second+4*time.Second)
		all.Wait()
		synctest.Wait() // a timer logs that one waits, in a goroutine of its own
		if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "tenant=many run="+evaluated.String()) {
			t.Errorf("of waits up to 200 s the log says\n%s", text.String())
		}
		f.Metrics.Each(time.Now(), func(family metrics.Family, samples []metrics.Sample) {
			if family.Name == "belfry_expression_wait_seconds" && (len(samples) != 1 || samples[0].Histogram.Count != 102) {
				t.Errorf("waits were measured as %+v, want 102", samples)
			}
		})
	})
}

// One that takes too long is cut off; who waits for a turn is not, unless he gives up.
func TestAnEvaluationThatTakesTooLongIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGated(t)
		ends := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		begun := time.Now()
		for range 2 {
			go func() {
				if err := f.Evaluating(t.Context(), "default", evaluated, ends); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 5*time.Second {
					t.Errorf("one was cut off after %s, with %v", time.Since(begun), err)
				}
			}()
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Evaluating(impatient, "default", evaluated, ends); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("who gives up was told so after %s, with %v", time.Since(begun), err)
		}
		if err := f.Evaluating(t.Context(), "default", evaluated, func(ctx context.Context) error { return ctx.Err() }); err != nil || time.Since(begun) != 5*time.Second {
			t.Errorf("who waited was let in after %s, with %v", time.Since(begun), err)
		}
		synctest.Wait()
	})
}

// What an evaluation reads may take longer than it may itself, and takes no room of others.
func TestW3_BlobsAreReadBeforeATurnIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForked(t, calls("a")+`, "x": {"needs": ["a"], "handler": {"name": "x"}, "when": ".steps.a.result == 1"}`)
		read := 0
		s := f.large("a", "1", func() error {
			read++
			time.Sleep(8 * time.Second)
			return f.Evaluating(t.Context(), "default", evaluated, func(ctx context.Context) error { // all the room there is
				return f.Evaluating(ctx, "default", evaluated, func(context.Context) error { return nil })
			})
		})
		if err := f.Left(t.Context(), s); err != nil {
			t.Error(err)
		}
		if f.are("x", ""); read != 1 {
			t.Errorf("it was read %d times, want once", read)
		}
	})
}

// A node whose answer cannot be had for now holds up none of the others; what others read is read once for all of them.
func TestW3_AnAnswerThatIsWantingHoldsUpNoOther(t *testing.T) {
	f := newForked(t, calls("a", "z:a")+`, "m": {"needs": ["a"], "handler": {"name": "x"}, "when": ".steps.a.result == 1"}, "n": {"needs": ["a"], "handler": {"name": "x"}, "when": ".steps.a.result == 1"},
		"o": {"needs": ["a"], "handler": {"name": "x"}, "when": ".run.job == \"report\""}, "p": {"needs": ["a"], "handler": {"name": "x"}, "when": ".steps.a.state == \"failed\""}`)
	read, away := 0, errors.New("away")
	s := f.large("a", "1", func() error { read++; return away })
	if err := f.Left(t.Context(), s); err == nil {
		t.Error("nobody was told that two steps were not asked")
	}
	if f.are("o p z", "m n"); read != 1 {
		t.Errorf("a bucket that is away was asked %d times, want once", read)
	}
	away, read = nil, 0
	if err := f.Left(t.Context(), s); err != nil {
		t.Error(err)
	}
	if f.are("m n o p z", ""); read != 1 {
		t.Errorf("it was read %d times, want once", read)
	}
}

// Where answers take long, each is written before the next is looked for: a crash loses one.
func TestW3_AnswersAreWrittenAsTheyCome(t *testing.T) {
	f := newForked(t, calls("a", "b")+`, "m": {"needs": ["a", "b"], "handler": {"name": "x"}, "when": ".steps.a.state == \"failed\""}, "n": {"needs": ["a", "b"], "handler": {"name": "x"}, "when": ".run.job == \"report\""},
		"o": {"needs": ["a", "b"], "handler": {"name": "x"}, "when": ".steps.b.result == 1"}, "p": {"needs": ["a", "b"], "handler": {"name": "x"}, "when": ".steps.b.result == 2"}`)
	f.ended("a")
	s := f.large("b", `"`+string(bytes.Repeat([]byte("x"), 300<<10))+`"`, func() error {
		if f.elapsed > 0 {
			f.are("m n o", "")
		}
		f.elapsed += 2 * time.Second
		return nil
	})
	if err := f.Left(t.Context(), s); err != nil {
		t.Error(err)
	}
	f.are("m n o p", "")
	if f.elapsed != 4*time.Second {
		t.Errorf("a large result was read for %s, want twice: it is not kept from one text to the next", f.elapsed)
	}
}

// The output of a run may be made twice and come out otherwise: of a backup that was restored the bucket knows nothing. The end names what was made for it.
func TestW3_AnOutputThatIsMadeTwiceStandsTwice(t *testing.T) {
	f := newForked(t, calls("a")+`}, "output": {"r": "${ .steps.a.result }", "s": "${ .steps.a.result }"`)
	f.Blobs = blob.New(memblob.OpenBucket(nil))
	open, released := f.stands(f.head), f.step("a")
	for _, letter := range []string{"x", "y", "y"} {
		result := `"` + strings.Repeat(letter, 2000) + `"`
		open.Version, released.Version = f.stands(open).Version, f.step("a").Version
		f.write(open)
		s := f.write(released.Start("worker", f.now.UnixMilli(), f.Lease))
		s = f.write(s.Succeed(f.now.UnixMilli(), run.Ref{Inline: []byte(result), Type: "application/json"}, "", run.Limits{Retention: 24 * time.Hour}))
		if err := f.Left(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		head := f.stands(open)
		got, err := f.Blobs.Get(t.Context(), "default", head.Result.Blob)
		if want := `{"r":` + result + `,"s":` + result + `}`; head.State != run.Succeeded || err != nil || string(got) != want {
			t.Errorf("with %s the run is %s with %.20s, %v, want %.20s", letter, head.State, got, err, want)
		}
	}
}

// A large result that is handed on as a whole has room, or whoever wants it lets others go first; meanwhile nobody's expressions wait for him.
func TestALargeInputIsHandedWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForked(t, calls("a")+`, "x": {"needs": ["a"], "handler": {"name": "x"}, "input": "${ .steps.a.result }"}`)
		s := f.large("a", strings.Repeat("x", 256<<10+1), func() error { return nil })
		if err := f.Left(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		hand := func(at *room.Place) error {
			data, err := f.StepInput(t.Context(), f.head, f.step("x"), true, at)
			if err == nil && len(data) != 256<<10+1 {
				t.Errorf("it was handed %d bytes", len(data))
			}
			return err
		}
		var held []*room.Place
		for range 4 {
			held = append(held, f.InputRoom("default"))
			if err := hand(held[len(held)-1]); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		for range 20 { // more than may hold blobs at once
			go func() {
				if err := hand(f.InputRoom("default")); !errors.Is(err, dispatch.ErrNoRoom) || time.Since(begun) != f.Lease/3 {
					t.Errorf("one more waited for %s, and was told %v", time.Since(begun), err)
				}
			}()
		}
		synctest.Wait()
		if err := hand(nil); err != nil || time.Since(begun) != 0 {
			t.Errorf("who only looks waited for %s: %v", time.Since(begun), err)
		}
		time.Sleep(f.Lease)
		held[0].Give()
		held[0].Give() // once more changes nothing
		last := f.InputRoom("default")
		if err := hand(last); err != nil {
			t.Error(err)
		}
		if err := hand(f.InputRoom("default")); !errors.Is(err, dispatch.ErrNoRoom) {
			t.Errorf("there is room for one more: %v", err)
		}
	})
}
