package cloud

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Pool is a pool of workers, with three queues of its own.
type Pool struct {
	Name    string
	Longest time.Duration // the longest timeout that its workers can run; 0: any that a job may have
}

var defaultPool = Pool{Name: job.DefaultQueue}

const wantPools = `names of queues, each with the longest timeout of its jobs where there is one, such as "default=14m,gpu=6h,mail"`

// ParsePools reads pools such as "default=14m,gpu=6h,mail". "default" is always among them: first, and without a bound, where it is
// left out.
func ParsePools(text string) ([]Pool, error) {
	var pools []Pool
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		pool, err := ParsePool(part)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(pools, func(p Pool) bool { return p.Name == pool.Name }) {
			return nil, invalid.Field("queues", text, "each queue once: "+wantPools)
		}
		pools = append(pools, pool)
	}
	if !slices.ContainsFunc(pools, func(p Pool) bool { return p.Name == job.DefaultQueue }) {
		pools = slices.Insert(pools, 0, defaultPool)
	}
	return pools, nil
}

// ParsePool reads one pool, such as "gpu=6h" or "mail".
func ParsePool(text string) (Pool, error) {
	name, longest, bound := strings.Cut(text, "=")
	if job.ValidName(name) != nil {
		return Pool{}, invalid.Field("queues", text, wantPools)
	}
	pool := Pool{Name: name}
	if bound {
		d, err := schedule.ParseDuration(longest)
		if err != nil || d.Std() < time.Second || d.Std() > job.MaxTimeout {
			return Pool{}, invalid.Field("queues", text, fmt.Sprintf("a longest timeout from 1s to %s: %s", schedule.Duration(job.MaxTimeout), wantPools))
		}
		pool.Longest = d.Std()
	}
	return pool, nil
}

var sqsNames = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// address is where the queues of the pool are. Of the 80 characters that SQS gives a name, "-normal" takes 7.
func (p Pool) address(at sqs.Address) (sqs.Address, error) {
	prefix := at.Prefix + "-" + p.Name
	if !sqsNames.MatchString(p.Name) {
		return at, invalid.Field("queues", p.Name, "letters, digits, - and _: SQS takes nothing else in a name")
	}
	if len(prefix) > 73 {
		return at, invalid.Field("queues", prefix+"-normal", "a name of 80 characters at most, as SQS has it: a shorter queue or a shorter prefix")
	}
	at.Prefix = prefix
	return at, nil
}
