package job

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Spread is over how many partitions the jobs of a tenant lie: what lists them reads that many partitions in step.
const Spread = 64

// Hash places a job: the partition of its definition and the bucket of its timers.
func Hash(tenant, name string) uint64 {
	return xxhash.Sum64String(tenant + "#" + name)
}

// Key is where the job's definition stands.
func Key(tenant, name string) store.Key {
	return store.Key{Partition: Partition(tenant, int(Hash(tenant, name)%Spread)), Sort: name}
}

// FromKey reads whose definition stands at a key; not ok for any other key.
func FromKey(k store.Key) (tenant, name string, ok bool) {
	rest, ok := strings.CutPrefix(k.Partition, partitionPrefix)
	tenant, _, whole := strings.Cut(rest, "#")
	return tenant, k.Sort, ok && whole
}

const partitionPrefix = "job#"

// Partition is the n-th of the tenant's partitions of jobs.
func Partition(tenant string, n int) string {
	var room [160]byte
	return string(record.AppendPadded(append(append(append(room[:0], partitionPrefix...), tenant...), '#'), int64(n), 2))
}

// PastKey is where the definition of a replaced generation stands.
func PastKey(tenant, name string, generation int64) store.Key {
	return store.Key{Partition: "def#" + tenant + "#" + name, Sort: string(record.AppendTime(nil, generation))}
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"job": Job{}, "def": past{}} }

func generationText(generation int64) string { return "g" + strconv.FormatInt(generation, 36) }
