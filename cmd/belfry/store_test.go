package main

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Whatever a server stores is shown with names, and what it shows can be read without the source.
func TestStoredItemsAreShownWithNames(t *testing.T) {
	data := t.TempDir()
	var dead, asked wire.Run
	t.Run("serve", func(t *testing.T) {
		call := to(t, dev(t, "--data", data, "--allow-exec"))
		call(0, `{"schedule": {"every": "1h", "jitter": "5s"}, "target": {"exec": {"argv": ["false"], "permanent_exit_codes": [1]}}}`, "job", "apply", "report", "-f", "-")
		call(0, `{"schedule": {"every": "2h"}, "target": {"exec": {"argv": ["false"], "permanent_exit_codes": [1]}}, "timeout": "90s"}`, "job", "apply", "report", "-f", "-")
		asked = decode[wire.Run](t, call(0, "", "job", "trigger", "report", "--delay", "1h", "--key", "monday", "--payload", `{"day": 1}`, "-o", "json").out)
		dead = decode[wire.Run](t, call(0, "", "job", "trigger", "report", "-o", "json").out)
		eventually(t, "the run fails", func() (bool, string) {
			got := call(0, "", "dead-letter", "list", "-o", "json").out
			return len(decode[[]wire.DeadLetter](t, got)) == 1, got
		})
	})
	id, err := runs.ParseID(dead.ID)
	if err != nil {
		t.Fatal(err)
	}
	later, err := runs.ParseID(asked.ID)
	if err != nil {
		t.Fatal(err)
	}
	request := timer.NewRequest(runs.Run{ID: later, Tenant: defaultTenant}, later.Nominal, false).Key().Partition + "/"
	letters := ""
	for n := range runs.DeadSpread {
		if partition := runs.DeadPartition(defaultTenant, n) + "/"; belfry(t, "", "store", "show", "--data", data, partition).code == 0 {
			letters = partition
		}
	}
	const instant = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \(\d{13}\)"`
	for name, want := range map[string][]string{
		"--job=report":                 {`"every": "2h"`, `"timeout": "90s"`, `"created": ` + instant, `"generation": ` + instant, `"until": ` + instant, `"permanent_exit_codes": \[\s+1\s+\]`},
		"--run=" + dead.ID:             {`"state": "failed"`, `"trigger": "request"`, `"outcome": "failed"`, `"ended": ` + instant},
		"def#default#report/":          {`"jitter": "5s"`, `"until": ` + instant},
		request:                        {`"create": {`, `"state": "scheduled"`, `"day": 1`, `"created": ` + instant},
		"shard#00/progress":            {`"horizon": ` + instant, `"swept": \[\s+` + instant + `,\s+` + instant, `"epoch": \d+`},
		letters:                        {`"state": "failed"`, `"error": "`},
		"idem#default#monday/-":        {`"run": "` + regexp.QuoteMeta(later.String()) + `"`, `"body": "`},
		timer.LayoutKey.String():       {`"shards": \d+`},
		id.Key(defaultTenant).String(): {`"state": "failed"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := belfry(t, "", "store", "show", "--data", data, name)
			if got.code != 0 {
				t.Fatalf("code %d: %s", got.code, got.errors)
			}
			for _, pattern := range want {
				if !regexp.MustCompile(pattern).MatchString(got.out) {
					t.Errorf("want %s in\n%s", pattern, got.out)
				}
			}
			if numbered := regexp.MustCompile(`"\d+":`).FindString(got.out); numbered != "" {
				t.Errorf("field %s has no name in\n%s", numbered, got.out)
			}
		})
	}
}

// A record of a later Belfry is told apart from a damaged one, and shown as far as it is known.
func TestFault53_StoredItemsOfANewerVersionAreSaidToBe(t *testing.T) {
	data := t.TempDir()
	opened, err := openStore(data, discardLog(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	grown, err := record.Encode(map[int]any{1: 8, 99: "what is to come"})
	if err != nil {
		t.Fatal(err)
	}
	newer := append([]byte{record.Format + 1}, grown[1:]...)
	for partition, value := range map[string][]byte{"meta": grown, "job#default#00": newer, "run#default#x#0": {record.Format, 0xff}, "later#x": grown} {
		if _, err := opened.Write(context.Background(), store.Op{Kind: store.Put, Key: store.Key{Partition: partition, Sort: "s"}, Value: value, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"meta/s": `{"99":"what is to come","shards":8}`, "later#x/s": `{"1":8,"99":"what is to come"}`,
		"job#default#00/s": "newer version of Belfry: format 2, this build knows 1", "run#default#x#0/s": "unreadable record",
	} {
		got := belfry(t, "", "store", "show", "--data", data, key)
		if got.code != 0 {
			t.Fatalf("%s: code %d: %s", key, got.code, got.errors)
		}
		var item struct{ Value any }
		if err := json.Unmarshal([]byte(got.out), &item); err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(item.Value); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is shown as %s, want %s", key, text, want)
		}
	}
}

// Each prefix that keys are made with has its struct.
func TestEveryKindOfRecordIsKnown(t *testing.T) {
	for partition, want := range map[string]any{
		job.Key("t", "n").Partition: job.Job{}, job.PastKey("t", "n", 1).Partition: nil, timer.Partition(0, 0): nil,
		timer.ShardKey(0).Partition: timer.Shard{}, timer.LayoutKey.Partition: timer.Layout{}, "swept#00": nil,
		runs.Partition("t", "n", 0): runs.Run{}, runs.DeadPartition("t", 0): runs.DeadLetter{}, "idem#t#key": nil,
		stats.Partition("t"): nil, "owed#00": nil,
	} {
		prefix, _, _ := strings.Cut(partition, "#")
		got := records()[prefix]
		if got == nil || want != nil && reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("%s: records are %T, want %T", partition, got, want)
		}
	}
}
