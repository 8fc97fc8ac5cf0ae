package run_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/record/recordtest"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// dynamoSize is what DynamoDB counts for an item: the names and values of its attributes (Item sizes and formats in the
// Amazon DynamoDB Developer Guide), with names of one letter: keys, value, version, expiry, attempt. A number takes a byte for
// every two digits, and one more.
func dynamoSize(op store.Op, version uint64) int {
	number := func(n uint64) int { return (len(fmt.Sprint(n))+1)/2 + 1 }
	return 6 + len(op.Key.Partition) + len(op.Key.Sort) + len(op.Value) + number(version) + number(uint64(op.Expires.Unix())) + number(op.Attempt)
}

// TestARunStaysWithinOneWriteUnit follows runs with as much data in place as they may hold through every kind of write, up to their
// end, where a result comes on top.
func TestARunStaysWithinOneWriteUnit(t *testing.T) {
	const now = int64(1_800_000_000_000)
	limits := run.Limits{MaxFailures: 100, MaxCrashes: 3, Retention: 30 * 24 * time.Hour}
	for name, row := range map[string]struct {
		tenant, job string
		inline      int // bytes
		attempts    int // that must still be told of at the end
		message     int // bytes of the last error that must still be there
		overlap     job.OverlapPolicy
	}{
		"OrdinaryNames":                     {"default", "billing.daily-report", 100, 5, 240, ""},
		"OrdinaryNamesFullPayload":          {"default", "billing.daily-report", run.MaxInline, 5, 120, ""},
		"LongestNames":                      {strings.Repeat("t", 128), strings.Repeat("j", 128), 100, 5, 120, ""},
		"LongestNamesFullPayload":           {strings.Repeat("t", 128), strings.Repeat("j", 128), run.MaxInline, 1, 40, ""},
		"OrdinaryNamesOwnPolicy":            {"default", "billing.daily-report", 100, 5, 240, "queue_latest"},
		"OrdinaryNamesFullPayloadOwnPolicy": {"default", "billing.daily-report", run.MaxInline, 4, 120, "queue_latest"},
		"LongestNamesOwnPolicy":             {strings.Repeat("t", 128), strings.Repeat("j", 128), 100, 4, 120, "queue_latest"},
		"LongestNamesFullPayloadOwnPolicy":  {strings.Repeat("t", 128), strings.Repeat("j", 128), run.MaxInline, 1, 40, "queue_latest"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run.Run{ID: run.RequestID(row.job, now, math.MaxUint64), Tenant: row.tenant, State: run.Queued, Generation: now, Trigger: run.ByRequest,
				Priority: queue.Normal, Epoch: 1 << 40, Created: now, Version: 1000, Overlap: row.overlap.Own(), Payload: run.Ref{Inline: bytes.Repeat([]byte("p"), row.inline)}}
			key := func(kind string) string {
				return "b/2027-01-15/" + row.tenant + "/" + kind + "/3f/" + r.ID.String() + "~1000#" + strings.Repeat("h", 22)
			}
			written := func() {
				t.Helper()
				op, err := r.Item(math.MaxUint64)
				if err != nil {
					t.Fatal(err)
				}
				most := 1024
				if len(r.Result.Inline) > 0 {
					most = min(4096, 1024+len(r.Result.Inline)) // a read unit
				}
				if size := dynamoSize(op, r.Version); size > most {
					t.Fatalf("%s with %d attempts: %d bytes, want at most %d", r.State, len(r.Attempts), size, most)
				}
				read, _, err := run.FromItem(r.Tenant, r.ID, store.Item{Key: op.Key, Version: r.Version + 1, Value: op.Value})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(read.Payload.Inline, r.Payload.Inline) || read.Log != r.Log || read.Result.Blob != r.Result.Blob || !bytes.Equal(read.Result.Inline, r.Result.Inline) || read.State != r.State {
					t.Fatalf("what was written was %+v, and reads %+v", r, read)
				}
				r = read
			}
			written()
			reason := strings.Repeat("déjà vu ", 200)
			for range 7 {
				r = r.Start(strings.Repeat("w", 81), now, 30*time.Second)
				written()
				r, _ = r.AskCancel(now, reason, limits.Retention)
				r.Cancel = false
				written()
				r = r.Fail(now, run.Failure{Error: strings.Repeat("fehlgeschlägen ", 100), NextAt: now + 1000, Log: key("log")}, limits)
				written()
			}
			if n := len(r.Attempts); n < row.attempts || len(r.Attempts[n-1].Error) < row.message-4 {
				t.Errorf("%d attempts are told of, the last with %d bytes of its error; want %d and %d", n, len(r.Attempts[n-1].Error), row.attempts, row.message)
			}
			if got := r.Attempts[len(r.Attempts)-1].Number; got != 7 {
				t.Errorf("the last attempt is told of as number %d, want 7", got)
			}
			again := r
			r = r.Start("w", now, time.Second).Succeed(now, run.Ref{Blob: key("result"), Type: "application/vnd.example.report+json"}, key("log"), limits)
			written()
			for _, size := range []int{1, run.MaxInline, run.MaxResult} {
				r = again.Start("w", now, time.Second).Succeed(now, run.Ref{Inline: bytes.Repeat([]byte("r"), size)}, key("log"), limits)
				written()
				if len(r.Result.Inline) != size || len(r.Attempts) < row.attempts {
					t.Errorf("%d bytes of a result of %d, and %d attempts", len(r.Result.Inline), size, len(r.Attempts))
				}
			}
			r, _ = again.AskCancel(now, reason, limits.Retention)
			r = r.Reopen(now+1, 1<<40, reason).Reopened(now)
			r.GateKey = ">" + strings.Repeat("h", 43)
			r = r.JoinNamed(strings.Repeat("g", 64), "", now, -600_000, 1000, true, now).ToFront(now, now, "", "")
			want := r.Wait
			if strings.HasPrefix(name, "LongestNamesFullPayload") { // nothing is left to shed: it takes a second unit while it waits
				r.Wait.Gate, want.Gate = "g", "g"
				r.GateKey = ""
			}
			written()
			if r.Wait != want || r.Released != now || !r.NamedGates || !r.Placed {
				t.Errorf("it waits as %+v, want %+v", r.Wait, want)
			}
		})
	}
}

// Keys of long values stand in the record of a run, as hashes, and are not shed. An ordinary run has room for those of eight gates; one that has none left takes what they take, and no more.
func TestHowMuchRoomKeysTake(t *testing.T) {
	const now, a = int64(1_800_000_000_000), 46 // bytes of a key in the record
	limits := run.Limits{MaxFailures: 100, MaxCrashes: 3, Retention: 30 * 24 * time.Hour}
	hash := gate.KeyOf(strings.Repeat("x", 100))
	longest := strings.Repeat("n", 128)
	for name, row := range map[string]struct {
		tenant, job string
		inline      int // bytes
		keys        int
		most        int // bytes
	}{
		"ordinary":                         {"default", "billing.daily-report", 100, job.MaxGates, 1024},
		"ordinary, full payload":           {"default", "billing.daily-report", run.MaxInline, 2, 1024},
		"ordinary, full payload, most":     {"default", "billing.daily-report", run.MaxInline, job.MaxGates, 1024 + 5*a},
		"longest names":                    {longest, longest, 100, 4, 1024},
		"longest names, most":              {longest, longest, 100, job.MaxGates, 1024 + 3*a},
		"longest names, full payload":      {longest, longest, run.MaxInline, 0, 1024 + 110},
		"longest names, full payload, one": {longest, longest, run.MaxInline, 1, 1024 + 110 + a},
		"all that there is":                {longest, longest, run.MaxInline, job.MaxGates, 1024 + 110 + job.MaxGates*a},
	} {
		t.Run(name, func(t *testing.T) {
			r := run.Run{ID: run.RequestID(row.job, now, math.MaxUint64), Tenant: row.tenant, State: run.Queued, Generation: now, Trigger: run.ByRequest,
				Priority: queue.Normal, Epoch: 1 << 40, Created: now, Version: 1000, Payload: run.Ref{Inline: bytes.Repeat([]byte("p"), row.inline)}, GateKey: hash, NamedGates: true}
			at := ""
			for range row.keys {
				r.NamedKeys, at = append(r.NamedKeys, hash), hash
			}
			largest := 0
			written := func(r run.Run) run.Run {
				t.Helper()
				op, err := r.Item(math.MaxUint64)
				if err != nil {
					t.Fatal(err)
				}
				largest = max(largest, dynamoSize(op, r.Version))
				read, _, err := run.FromItem(r.Tenant, r.ID, store.Item{Key: op.Key, Version: r.Version, Value: op.Value})
				if err != nil || read.GateKey != r.GateKey || !slices.Equal(read.NamedKeys, r.NamedKeys) || read.Wait != r.Wait {
					t.Fatalf("it reads with the keys %q and %q, and waits as %+v, %v", read.GateKey, read.NamedKeys, read.Wait, err)
				}
				return read
			}
			for range 7 {
				r = written(r.Start(strings.Repeat("w", 81), now, 30*time.Second))
				r = written(r.Fail(now, run.Failure{Error: strings.Repeat("fehlgeschlägen ", 100), NextAt: now + 1000}, limits))
			}
			written(r.JoinNamed(strings.Repeat("g", 64), at, now, -600_000, 1000, true, now).ToFront(now, now, "", ""))
			if largest > row.most {
				t.Errorf("it takes up to %d bytes, want at most %d", largest, row.most)
			}
		})
	}
}

func TestBlobKeysSurviveTheRecord(t *testing.T) {
	for _, tenant := range []string{"default", "2027-01-15", "log", "b"} {
		r := run.Run{ID: run.FireID("log", 1), Tenant: tenant, State: run.Succeeded, Version: 1}
		r.Log = "b/2027-01-15/" + tenant + "/log/3f/" + r.ID.String() + "~3#abcdefghijklmnopqrstuv"
		op, err := r.Item(1)
		if err != nil {
			t.Fatal(err)
		}
		read, _, err := run.FromItem(tenant, r.ID, store.Item{Key: op.Key, Version: 2, Value: op.Value})
		if err != nil || read.Log != r.Log {
			t.Errorf("tenant %s: %q came back as %q, %v", tenant, r.Log, read.Log, err)
		}
	}
}

func TestIDs(t *testing.T) {
	for _, id := range []run.ID{run.FireID("a", 0), run.FireID("a.b-c_d", 1_800_000_000_000), run.RequestID("a", 1, 0), run.RequestID("a", 1, math.MaxUint64)} {
		read, err := run.ParseID(id.String())
		if err != nil || read != id {
			t.Errorf("%s came back as %+v, %v", id, read, err)
		}
		// Keys are stored: they stay as they are.
		text := strings.TrimSuffix(fmt.Sprintf("%s~%09s~%s", id.Job, strconv.FormatInt(id.Nominal, 36), id.Random), "~")
		key := id.Key("t")
		if sort := fmt.Sprintf("%015d#%s", id.Nominal, id.Random); id.String() != text || key.Sort != sort {
			t.Errorf("%+v is %s and stands at %s, want %s and %s", id, id, key, text, sort)
		}
		if read, err := run.IDFromSort(id.Job, key.Sort); err != nil || read != id {
			t.Errorf("%s came back from its key as %+v, %v", id, read, err)
		}
		if key != read.Key("t") || key.Partition == id.Key("u").Partition {
			t.Errorf("%s stands at %s and at %s, for another tenant at %s", id, key, read.Key("t"), id.Key("u"))
		}
	}
	for _, text := range []string{"", "~", "a", "a~", "~000000001", "a~1", "a~0000000010", "a~00000000A", "a~-00000001", "a~+00000001", "a~000000001~",
		"a~000000001~0", "a~000000001~000000000000A", "a~000000001~zzzzzzzzzzzzz", "a~000000001~0000000000000~", "a#b~000000001", "a/b~000000001",
		strings.Repeat("a", 129) + "~000000001", "ä~000000001", "a~00000_001"} {
		if id, err := run.ParseID(text); err == nil {
			t.Errorf("%q was read as %+v", text, id)
		}
	}
}

func TestRunsOfAJobStandInTheOrderOfTheirTimes(t *testing.T) {
	times := []int64{0, 1, 35, 36, 59_999, 60_000, 1_800_000_000_000, 4_000_000_000_000}
	var keys, ids []string
	for _, ms := range times {
		keys, ids = append(keys, run.FireID("a", ms).Key("t").Sort), append(ids, run.FireID("a", ms).String())
	}
	if !slices.IsSorted(keys) || !slices.IsSorted(ids) {
		t.Errorf("not in order: %q, %q", keys, ids)
	}
	if from := run.SortFrom(60_000); from > run.FireID("a", 60_000).Key("t").Sort || from > run.RequestID("a", 60_000, 0).Key("t").Sort ||
		from < run.RequestID("a", 59_999, math.MaxUint64).Key("t").Sort {
		t.Errorf("SortFrom(60000) = %q does not part what is before from what is not", from)
	}
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{"a~000000001", "a~000000001~0000000000001", "a~zzzzzzzzz~3w5e11264sgsf", "~~", "a~00000000A~x", "a#~000000001"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := run.ParseID(text)
		if err != nil {
			return
		}
		if id.String() != text {
			t.Fatalf("%q was read as %+v, which is %q", text, id, id)
		}
		key := id.Key("t")
		if strings.Count(key.Partition, "#") != 3 || len(key.Partition) > store.MaxPartition {
			t.Fatalf("%q leads to partition %q", text, key.Partition)
		}
		if back, err := run.IDFromSort(id.Job, key.Sort); err != nil || back != id {
			t.Fatalf("%q came back from its key as %+v, %v", text, back, err)
		}
	})
}

func sample() run.Message {
	return run.Message{Sent: 1_800_000_000_500, Run: run.Run{ID: run.RequestID("report", 1_800_000_000_000, 99), Tenant: "acme", Version: 7, State: run.Queued,
		Generation: 5, Trigger: run.ByRequest, Priority: queue.High, Created: 3, Payload: run.Ref{Inline: []byte(`{"a":1}`)},
		Attempts: []run.Attempt{{Number: 1, Started: 2, Ended: 3, Outcome: run.OutcomeFailed, Error: "exit: code 1"}}}}
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	m := sample()
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.DecodeMessage(body)
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", m) {
		t.Fatalf("%+v came back as %+v, %v", m, got, err)
	}
}

func TestFault53_NewerAndBrokenMessagesAreTold(t *testing.T) {
	body, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		body []byte
		want error
	}{
		"Newer": {append([]byte{record.Format + 1}, body[1:]...), record.ErrNewer},
		"Torn":  {body[:len(body)/2], record.ErrBroken},
		"Empty": {nil, record.ErrBroken},
		"NoRun": {[]byte{record.Format, 0xa0}, record.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run.DecodeMessage(row.body); !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

func FuzzDecodeMessage(f *testing.F) {
	body, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add(body[:len(body)-1])
	f.Add([]byte{1, 0xa0})
	f.Fuzz(func(t *testing.T, body []byte) {
		recordtest.Same(t, body, run.ReadMessage)
		m, err := run.DecodeMessage(body)
		if err != nil {
			if !errors.Is(err, record.ErrBroken) && !errors.Is(err, record.ErrNewer) {
				t.Fatalf("%v tells neither broken nor newer", err)
			}
			return
		}
		if m.Run.ID.Job == "" {
			t.Fatal("a message without a run was read")
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.DecodeMessage(again); err != nil {
			t.Fatalf("%+v was read, and cannot be read when written: %v", m, err)
		}
	})
}

func TestDeadLettersComeBackAsTheyWere(t *testing.T) {
	r := run.Run{ID: run.FireID("report", 60_000), Tenant: "acme", State: run.Dead, Ended: 61_000, Expires: 99_000,
		Attempts: []run.Attempt{{Number: 1, Error: "first"}, {Number: 2, Error: "exit: code 1"}}}
	op, err := r.DeadLetterOp(1)
	if err != nil {
		t.Fatal(err)
	}
	letter, err := run.DeadLetterFromItem(store.Item{Key: op.Key, Version: 1, Value: op.Value})
	if want := (run.DeadLetter{Run: r.ID, Ended: 61_000, State: run.Dead, Error: "exit: code 1"}); err != nil || letter != want {
		t.Fatalf("got %+v, %v; want %+v", letter, err, want)
	}
	for _, sort := range []string{"", "x#report~000000001", "000000000061000", "000000000061000#nothing"} {
		if letter, err := run.DeadLetterFromItem(store.Item{Key: store.Key{Partition: "p", Sort: sort}, Version: 1, Value: op.Value}); err == nil {
			t.Errorf("%q was read as %+v", sort, letter)
		}
	}
}
