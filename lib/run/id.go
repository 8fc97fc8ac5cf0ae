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
// As text it is "job~nominal" or "job~nominal~random", nominal in Unix ms as 9 base-36 digits: names hold no "~".
type ID struct {
	Job     string
	Nominal int64  // Unix ms
	Random  string // "" for a fire
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
	if id.Random == "" {
		return out
	}
	return append(append(out, '~'), id.Random...)
}

// LogValue is the text, made only where a line is logged.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// ParseID reads the text of an ID. A run has only one: no other text names the same run.
func ParseID(text string) (ID, error) {
	name, rest, _ := strings.Cut(text, "~")
	digits, random, requested := strings.Cut(rest, "~")
	nominal, ok := parseDigits(digits, nominalDigits)
	if !ok || requested && !validRandom(random) || job.ValidName(name) != nil {
		return ID{}, fmt.Errorf("run ID %.150q: want job~time or job~time~random, as Belfry gave it", text)
	}
	return ID{Job: name, Nominal: int64(nominal), Random: random}, nil
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
	return "run#" + tenant + "#" + job + "#" + strconv.Itoa(n) // no memory of its own: n is a digit
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
