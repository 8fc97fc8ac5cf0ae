package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// dataFindings looks at a data folder, and gives the jobs in it.
func (c *cli) dataFindings(ctx context.Context, data string) ([]finding, []wire.Job) {
	if _, err := os.Stat(embed.StoreFolder(data)); err != nil {
		f := finding{Check: "data folder", Status: findProblem, Found: "there is no store in " + data, Why: "A server would begin with nothing there.",
			Help: "Name the folder that the server is started with."}
		if _, err := os.Stat(filepath.Join(data, embed.Unfinished)); err == nil {
			f.Found, f.Help = data+" holds a restore that was cut short", "Remove the folder, and restore again."
		}
		return []finding{f}, nil
	}
	found := []finding{privateFinding("data folder", data), syncFinding(data), c.roomFinding(data)}
	damage, held := c.damageFindings(ctx, data)
	if found = append(found, damage...); !held && slices.ContainsFunc(damage, func(f finding) bool { return f.Status == findProblem }) {
		return append(found, finding{Check: "store", Status: findAttention, Found: "it is damaged, so its records were not looked at",
			Why: "A server that is started on it may refuse to, or go on without what is damaged.", Help: "See what is damaged above."}), nil
	}
	s := scan{now: c.now(), definitions: newDefinitions()}
	err := s.with(data, func() error {
		told := c.progress("reading records", 0)
		defer told.end()
		return s.all(ctx, data, told)
	})
	if err != nil {
		return append(found, storeFinding(err)), nil
	}
	return append(found, s.findings()...), s.jobs
}

// storeFinding explains why a store could not be looked at.
func storeFinding(err error) finding {
	f := finding{Check: "store", Status: findProblem, Found: err.Error()}
	switch {
	case errors.Is(err, pebble.ErrLocked):
		f.Status, f.Found = findAttention, "a server has it open, so what is stored was not looked at"
		f.Help = "Ask the server: belfry doctor without --data."
	case errors.Is(err, pebble.ErrFormat):
		f.Why, f.Help = "A store that a newer Belfry wrote would be damaged by an older one.", "Use the version that wrote it; docs/upgrade.md says how versions fit."
	case errors.Is(err, store.ErrDamaged):
		f.Why, f.Help = "What stands behind the damage would be lost.", helpDamage
	default:
		f.Why, f.Help = "A server would not start on it.", "Look at the rights of the files, and at the kernel's log for errors of the disk. Else restore a backup."
	}
	return f
}

// scan reads all that is stored, once, and keeps only what it finds worth telling.
type scan struct {
	now       time.Time
	items     int
	newer     int
	broken    []string // the first keys
	letters   int
	unended   int
	faults    []string
	count     int        // of jobs
	jobs      []wire.Job // the first of them
	shards    int
	behind    time.Duration // of the sweep that is furthest behind its watermark
	watermark time.Time     // the lowest

	definitions definitions

	blobs    *blob.Bucket
	files    int      // blobs that were read
	harmed   int      // of them, or missing
	harmings []string // the first of them
}

// with opens the blobs of a data folder for what reads the items.
func (s *scan) with(data string, read func() error) (err error) {
	if s.blobs, err = embed.ViewBlobs(data); err != nil {
		return err
	}
	return errors.Join(read(), s.blobs.Close())
}

func (s *scan) all(ctx context.Context, data string, told *progress) error {
	return pebble.Read(ctx, embed.StoreFolder(data), nil, func(item store.Item) error {
		s.items++
		told.add(1)
		err := s.item(ctx, item)
		if errors.Is(err, record.ErrNewer) {
			s.newer++
		} else if err != nil && len(s.broken) < 5 {
			s.broken = append(s.broken, item.Key.String())
		}
		return nil
	})
}

func (s *scan) item(ctx context.Context, item store.Item) error {
	parts := strings.Split(item.Partition, "#")
	switch {
	case parts[0] == "job" && len(parts) == 3:
		j, err := job.FromItem(parts[1], item.Sort, item)
		if err != nil {
			s.definitions.broken[edition{tenant: parts[1], job: item.Sort}] = err
		}
		if err != nil || j.Deleted {
			return err
		}
		s.definitions.has(j.Tenant, j.Name, j.Generation, j.Def)
		s.count++
		if j.Fault != "" {
			s.faults = append(s.faults, j.Name)
		}
		if len(s.jobs) < lookedAt {
			s.jobs = append(s.jobs, wire.Job{Name: j.Name, Definition: j.Def})
		}
	case parts[0] == "def":
		return s.definitions.past(item)
	case len(item.Value) > 0 && item.Value[0] > record.Format:
		return record.ErrNewer
	case parts[0] == "dead":
		letter, err := runs.DeadLetterFromItem(item)
		if err == nil && !letter.Discarded {
			s.letters++
		}
		return err
	case parts[0] == "due":
		_, err := timer.FromItem(item)
		return err
	case parts[0] == "shard":
		shard, err := timer.ShardFromItem(0, item)
		if err != nil {
			return err
		}
		s.shards++
		if at := time.UnixMilli(shard.Watermark); s.watermark.IsZero() || at.Before(s.watermark) {
			s.watermark = at
		}
		s.behind = max(s.behind, time.Duration(shard.Watermark-shard.Oldest())*time.Millisecond)
	case parts[0] == "run" && len(parts) == 4:
		id, err := runs.IDFromSort(parts[2], item.Sort)
		if err != nil {
			return err
		}
		r, _, err := runs.FromItem(parts[1], id, item)
		if err == nil && r.State != runs.Fenced && !r.State.Ended() {
			s.unended++
			s.definitions.goes(r)
		}
		if err == nil {
			s.blobsOf(ctx, r)
		}
		return err
	}
	return nil
}

// blobsOf reads what a run keeps beside its record.
func (s *scan) blobsOf(ctx context.Context, r runs.Run) {
	for _, kept := range [][2]string{{"payload", r.Payload.Blob}, {"result", r.Result.Blob}, {"log", r.Log}} {
		what, key := kept[0], kept[1]
		if key == "" || blob.Expired(key, s.now) {
			continue
		}
		s.files++
		_, err := s.blobs.Get(ctx, r.Tenant, key)
		switch {
		case err == nil:
			continue
		case errors.Is(err, blob.ErrNotFound):
			what += " is gone"
		case errors.Is(err, blob.ErrCorrupt):
			what += " is damaged"
		case ctx.Err() != nil:
			return // what reads the items tells of it
		default:
			what += ": " + err.Error()
		}
		name, _, _ := strings.Cut(key, "#")
		if s.harmed++; s.harmed <= mostDamage {
			s.harmings = append(s.harmings, fmt.Sprintf("blobs/%s: of run %s, tenant %s, the %s", name, r.ID, r.Tenant, what))
		}
	}
}

// stuckAfter is how far sweeps may be behind: the last one waits for an hour, and goes by whole minutes.
const stuckAfter = time.Hour + 10*time.Minute

func (s *scan) findings() []finding {
	found := []finding{fine("store", "%d items, all readable", s.items)}
	switch {
	case s.newer > 0:
		found[0] = finding{Check: "store", Status: findProblem, Found: fmt.Sprintf("%d of %d items were written by a newer Belfry", s.newer, s.items),
			Why: "This version leaves them as they are: jobs and runs among them stand still.", Help: "Use the newer version; docs/upgrade.md says how versions fit."}
	case len(s.broken) > 0:
		found[0] = finding{Check: "store", Status: findProblem, Found: "unreadable items: " + strings.Join(s.broken, ", "),
			Why: "What they are of stands still.", Help: "belfry store show KEY shows one. Restore a backup where they are jobs that you need."}
	}
	ticks := fine("ticks", "they have come to %s (%s); what was due since is missed, and caught up at the start", clock(s.watermark), countOf(s.shards, "shard"))
	if s.behind > stuckAfter {
		ticks.Status = findAttention
		ticks.Found = fmt.Sprintf("a sweep is %s behind the ticks", s.behind.Round(time.Minute))
		ticks.Why = "Sweeps prove that each promise was kept. One that does not move has met something that it cannot read."
		ticks.Help = "Start the server and look in its log for \"sweep\"."
	}
	if s.watermark.After(s.now.Add(time.Minute)) {
		ticks.Status = findProblem
		ticks.Found = fmt.Sprintf("the ticks have come to %s, which is in the future", clock(s.watermark))
		ticks.Why, ticks.Help = "This host's clock is off, or was while the server ran.", "Set it by NTP before you start the server."
	}
	found = append(append(found, s.blobFindings()...), s.definitions.findings()...)
	return append(found, ticks, fine("runs", "%d have not ended", s.unended), lettersFinding(s.letters), faultsFinding(s.count, s.faults))
}
