package run

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ID names a run within its tenant and says where it stands, so that no index is needed: the job, the nominal time, and
// for a run on demand a random part. A fire's run has none: whoever finds the fire arrives at the same ID.
//
// As text it is "job~nominal" or "job~nominal~random", nominal in Unix ms as 9 base-36 digits: names hold no "~". A step of a workflow's run has
// the text of that run, a slash and its path: "etl~0mi4lf3k0/parts/load".
type ID struct {
	Job     string
	Nominal int64  // Unix ms
	Random  string // "" for a fire
	Step    string // the path of a step of that run, "" for the run itself
}

const (
	nominalDigits = 9  // base 36 of Unix ms up to the year 5188
	randomDigits  = 13 // base 36 of 64 bits
)

// Spread is over how many partitions the on-demand runs of a job lie; fires, at most one a second, have one more to
// themselves. One partition of DynamoDB takes 1,000 write units a second, some 250 runs.
const Spread = 4

// FireID names the run of a job's fire.
func FireID(job string, nominal int64) ID { return ID{Job: job, Nominal: nominal} }

// RequestID names a run on demand; random must be drawn anew for each.
func RequestID(job string, nominal int64, random uint64) ID {
	var room [randomDigits]byte
	var digits [randomDigits]byte
	return ID{Job: job, Nominal: nominal, Random: string(appendPadded(room[:0], strconv.AppendUint(digits[:0], random, 36), randomDigits))}
}

// appendPadded writes digits with zeros in front, as many as make so many of them.
func appendPadded(out, digits []byte, want int) []byte {
	for range want - len(digits) {
		out = append(out, '0')
	}
	return append(out, digits...)
}

func (id ID) String() string {
	var room [192]byte
	return string(id.Append(room[:0]))
}

// Append writes the text of the ID behind what is there.
func (id ID) Append(out []byte) []byte {
	var digits [16]byte
	out = append(append(out, id.Job...), '~')
	out = appendPadded(out, strconv.AppendInt(digits[:0], id.Nominal, 36), nominalDigits)
	if id.Random != "" {
		out = append(append(out, '~'), id.Random...)
	}
	if id.Step != "" {
		out = append(append(out, stepMark), id.Step...)
	}
	return out
}

// stepMark stands before the path of a step, and between the names in it. No ID of a run holds it.
const stepMark = '/'

// Whole is the run itself: of a step, the run of the workflow that the step is of.
func (id ID) Whole() ID {
	id.Step = ""
	return id
}

// At is the step of that path in the run of a workflow.
func (id ID) At(path string) ID {
	id.Step = path
	return id
}

// IsStep tells a step of a workflow's run from a run.
func (id ID) IsStep() bool { return id.Step != "" }

// LogValue is the text, made only where a line is logged.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// ParseID reads the text of an ID. A run has only one: no other text names the same run.
func ParseID(text string) (ID, error) {
	whole, step, stepped := strings.Cut(text, string(stepMark))
	name, rest, _ := strings.Cut(whole, "~")
	digits, random, requested := strings.Cut(rest, "~")
	nominal, ok := parseDigits(digits, nominalDigits)
	if !ok || requested && !validRandom(random) || stepped && !validStep(step) || job.ValidName(name) != nil {
		return ID{}, fmt.Errorf("run ID %.150q: want job~time or job~time~random, as Belfry gave it, or that and /step of a workflow's run", text)
	}
	return ID{Job: name, Nominal: int64(nominal), Random: random, Step: step}, nil
}

// MaxStep is how long the path of a step may be: ten names of 64 bytes, and what stands between them.
const MaxStep = 10*65 - 1

// validStep tells whether the text may be the path of a step: names of letters, digits, underscores and hyphens with slashes between.
func validStep(path string) bool {
	if path == "" || len(path) > MaxStep {
		return false
	}
	for name := range strings.SplitSeq(path, string(stepMark)) {
		for i := range len(name) {
			switch c := name[i]; {
			case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			case i > 0 && (c == '_' || c == '-'):
			default:
				return false
			}
		}
		if len(name) < 1 || len(name) > 64 {
			return false
		}
	}
	return true
}

// parseDigits reads a number of base 36 that is written in so many digits, as an ID has it.
func parseDigits(text string, digits int) (uint64, bool) {
	if len(text) != digits {
		return 0, false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(text, 36, 64)
	return n, err == nil
}

// Time is the nominal time.
func (id ID) Time() time.Time { return time.UnixMilli(id.Nominal).UTC() }

// OnDemand tells a requested run from a fire's.
func (id ID) OnDemand() bool { return id.Random != "" }

// Key is where the run stands.
func (id ID) Key(tenant string) store.Key {
	if id.Step != "" {
		return store.Key{Partition: StepPartition(tenant, id), Sort: id.Step}
	}
	n := 0
	if id.OnDemand() {
		n = 1 + int(id.Random[randomDigits-1])%Spread
	}
	var room [64]byte
	return store.Key{Partition: Partition(tenant, id.Job, n), Sort: string(append(appendSort(room[:0], id.Nominal), id.Random...))}
}

// Partitions is how many partitions hold the history of one job.
const Partitions = 1 + Spread

// Partition is the n-th of them.
func Partition(tenant, job string, n int) string {
	return runPrefix + tenant + "#" + job + "#" + strconv.Itoa(n) // no memory of its own: n is a digit
}

// StepPartition holds the steps of a workflow's run, by their paths.
func StepPartition(tenant string, of ID) string {
	return stepPrefix + tenant + "#" + of.Whole().String()
}

const (
	runPrefix  = "run#"
	stepPrefix = "step#"
)

// IDFromKey reads which run or step stands at a key, and whose; not ok for any other key.
func IDFromKey(k store.Key) (tenant string, id ID, ok bool) {
	if rest, is := strings.CutPrefix(k.Partition, runPrefix); is {
		tenant, rest, _ = strings.Cut(rest, "#")
		name, _, _ := strings.Cut(rest, "#")
		id, err := IDFromSort(name, k.Sort)
		return tenant, id, err == nil
	}
	if rest, is := strings.CutPrefix(k.Partition, stepPrefix); is {
		tenant, text, _ := strings.Cut(rest, "#")
		id, err := ParseID(text)
		return tenant, id.At(k.Sort), err == nil
	}
	return "", ID{}, false
}

// StepFromItem reads a step of a workflow's run from the item in its partition.
func StepFromItem(tenant string, of ID, item store.Item) (Run, error) {
	if !validStep(item.Sort) {
		return Run{}, fmt.Errorf("sort key %q of a step of %s: want a path: %w", item.Sort, of.Whole(), record.ErrBroken)
	}
	r, _, err := FromItem(tenant, of.At(item.Sort), item)
	return r, err
}

// SortFrom is the lowest sort key of runs at nominal (Unix ms) or later.
func SortFrom(nominal int64) string {
	var room [32]byte
	return string(appendSort(room[:0], nominal))
}

func appendSort(out []byte, nominal int64) []byte {
	return append(record.AppendTime(out, nominal), '#')
}

// IDFromSort reads the ID of a run of the job from the sort key of its item. A key that no run has gives record.ErrBroken.
func IDFromSort(job, sort string) (ID, error) {
	digits, random, _ := strings.Cut(sort, "#")
	nominal, err := strconv.ParseInt(digits, 10, 64)
	id := ID{Job: job, Nominal: nominal, Random: random}
	if err != nil || nominal < 0 || SortFrom(nominal)+random != sort || id.OnDemand() && !validRandom(random) {
		return ID{}, fmt.Errorf("sort key %q of a run of %s: want nominal#random: %w", sort, job, record.ErrBroken)
	}
	return id, nil
}

// validRandom tells whether it is the random part of an ID.
func validRandom(text string) bool {
	_, ok := parseDigits(text, randomDigits)
	return ok
}
