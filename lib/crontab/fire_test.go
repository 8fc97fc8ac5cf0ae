package crontab_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/crontab"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/tests/program"
)

// A system crontab is imported and fired by a whole scheduler in virtual time, which begins on Saturday, 1 January 2000,
// at midnight UTC. Its commands are real processes.
func TestASystemCrontabFires(t *testing.T) {
	tools := t.TempDir()
	sampler := "#!/bin/sh\necho \"$0|$1|$2|$GREETING|$HOME|$SHELL|${USER}\"\n"
	if err := program.Write(filepath.Join(tools, "sampler-one"), []byte(sampler)); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	text := fmt.Sprintf(`PATH=%s:/usr/bin:/bin
GREETING = "good  morning"
*/30 5-6 * * * root command -v sampler-one > /dev/null && sampler-one 60 2
45 4 * * 6 root [ -x /does/not/exist ] || exit
7 3 * * * root [ "$(date +\%%H)" != "" ] && echo "100\%%"
10 3 * * sat root cat; pwd%%one%%two \%% three
30 5 * * 0 root echo Sunday
@hourly other sampler-one
`, tools)
	file, err := crontab.Parse([]byte(text), crontab.Config{System: true, Origin: "sampler", User: "root", Home: home, Zone: "UTC"})
	if err != nil || len(file.Jobs) != 5 || len(file.Notes) != 1 {
		t.Fatalf("%d jobs, notes %+v, %v", len(file.Jobs), file.Notes, err)
	}
	synctest.Test(t, func(t *testing.T) {
		targets, err := target.New(target.Config{Now: time.Now, AllowExec: true})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		n, err := node.New(t.Context(), node.Config{
			Store:  memory.New(memory.Config{Now: time.Now}),
			Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})},
			Blobs:  blob.New(memblob.OpenBucket(nil)), Targets: targets, Metrics: metrics.New(), Now: time.Now,
			Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Name: "test",
			Every: 20 * time.Second, LookAhead: 40 * time.Second, // a night of ticks each second takes half a minute
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(time.Second)
		names := map[int]string{}
		for _, j := range file.Jobs {
			names[j.Line] = j.Name
			if _, _, err := n.Control.Put(ctx, "default", j.Name, j.Def, control.Match{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(8 * time.Hour)
		synctest.Wait()

		ends := func(line int) (ended []string) {
			runs, _, err := n.Control.Runs(ctx, "default", control.RunFilter{Job: names[line], To: time.Now()}, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				log, err := n.Control.LogOf(ctx, r, 0)
				if err != nil {
					t.Fatal(err)
				}
				ended = append(ended, fmt.Sprintf("%s %s %s", r.ID.Time().Format("15:04"), r.State, log.Text()))
			}
			return ended
		}
		sampled := fmt.Sprintf(" %s %s/sampler-one|60|2|good  morning|%s|/bin/sh|root\n", run.Succeeded, tools, home)
		for line, want := range map[int][]string{
			3: {"06:30" + sampled, "06:00" + sampled, "05:30" + sampled, "05:00" + sampled},
			4: {"04:45 failed "}, // exit gives what the test before it gave, as under cron
			5: {"03:07 succeeded 100%\n"},
			6: {"03:10 succeeded one\ntwo % three\n" + home + "\n"},
			7: nil,
		} {
			if got := ends(line); strings.Join(got, "§") != strings.Join(want, "§") {
				t.Errorf("line %d: got %q, want %q", line, got, want)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
