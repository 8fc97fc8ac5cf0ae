package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// String is one line of a readable trace.
func (s Step) String() string {
	line := fmt.Sprintf("%7d %s  %-10s %-12s %s", s.N, s.At.Format("02 15:04:05.000"), s.Who, s.What, s.Key)
	if s.Sort != "" {
		line += " / " + s.Sort
	}
	if s.Outcome != "" {
		line += "  => " + s.Outcome
	}
	return line
}

// parting tells where two traces part, with what led there.
func parting(one, other []string) string {
	const before, after = 30, 3
	at := 0
	for at < min(len(one), len(other)) && one[at] == other[at] {
		at++
	}
	cut := func(all []string, from, to int) []string { return all[min(from, len(all)):min(to, len(all))] }
	lines := slices.Clone(cut(one, max(0, at-before), at))
	lines = append(lines, "--- one:")
	lines = append(lines, cut(one, at, at+after)...)
	lines = append(lines, "--- the other:")
	lines = append(lines, cut(other, at, at+after)...)
	return strings.Join(lines, "\n")
}

// changeLine tells of a change of the store in a readable trace, "" where the key says it all.
func changeLine(before, after store.Item) string {
	if !after.Exists() {
		return fmt.Sprintf("          %s is gone", after.Key)
	}
	text := ""
	switch kind, _, _ := strings.Cut(after.Partition, "#"); kind {
	case "run", "step":
		var r run.Run
		if record.Decode(after.Value, &r) == nil {
			text = fmt.Sprintf("%s generation %d epoch %d attempt %d failures %d crashes %d fence %d by %s, lease %s, next %s", r.State, r.Generation, r.Epoch, r.Attempt,
				r.Failures, r.Crashes, r.Fence, r.Worker, clockText(r.Lease), clockText(r.NextAt))
			if r.Cancel {
				text += ", told to stop"
			}
			if r.Through != 0 {
				text += ", decides through " + clockText(r.Through)
			}
		}
	case "shard":
		var s timer.Shard
		if record.Decode(after.Value, &s) == nil {
			text = fmt.Sprintf("epoch %d of %s until %s, horizon %s, watermark %s, swept", s.Epoch, s.Owner, clockText(s.Lease), clockText(s.Horizon), clockText(s.Watermark))
			for _, swept := range s.Swept {
				text += " " + clockText(swept)
			}
			if len(s.Reached) > 0 {
				text += fmt.Sprintf(", reached %v", s.Reached)
			}
		}
	case "due":
		wake, _, _ := strings.Cut(after.Sort, "#")
		if ms, err := strconv.ParseInt(wake, 10, 64); err == nil {
			text = "a timer for " + clockText(ms)
			if t, err := timer.FromItem(after); err == nil && t.Kind == timer.Fire {
				text += " from " + clockText(t.Nominal) + " to " + clockText(t.To)
				if t.Owed != 0 {
					text += ", owes through " + clockText(t.Owed)
				}
			}
		}
	case "job":
		var j job.Job
		if record.Decode(after.Value, &j) == nil {
			text = fmt.Sprintf("generation %d, paused %t, deleted %t, past %v", j.Generation, j.Def.Paused, j.Deleted, j.Past)
		}
	}
	return fmt.Sprintf("          %s v%d to v%d: %s", after.Key, before.Version, after.Version, text)
}

func clockText(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format("15:04:05.000")
}
