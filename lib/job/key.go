package job

import (
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"

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

// Partition is the n-th of the tenant's partitions of jobs.
func Partition(tenant string, n int) string {
	return fmt.Sprintf("job#%s#%02d", tenant, n)
}

// PastKey is where the definition of a replaced generation stands.
func PastKey(tenant, name string, generation int64) store.Key {
	return store.Key{Partition: "def#" + tenant + "#" + name, Sort: fmt.Sprintf("%015d", generation)}
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"job": Job{}, "def": past{}} }

func generationText(generation int64) string { return "g" + strconv.FormatInt(generation, 36) }
