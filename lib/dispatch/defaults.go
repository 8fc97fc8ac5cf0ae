package dispatch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// DefaultCallbacks names the jobs that are called on events of all jobs that name none for these, as the operator says. The zero value names
// none.
//
// It is the setting of a process, and no record: an end is written with its callback by whoever writes the end.
type DefaultCallbacks struct {
	Failed    DefaultCallee
	Missed    DefaultCallee
	Recovered DefaultCallee // costs each success two reads
}

// DefaultCallee names a job for each tenant. That of "" is for every tenant without an entry of its own: the job of that name in its own tenant.
type DefaultCallee map[string]string

const wantCallee = "JOB or TENANT=JOB, as in tell-ops or acme=tell-ops: the name of a job, which is in the tenant of the run"

// ParseDefaultCallee reads JOB or TENANT=JOB, each tenant once; texts may have several with commas between them. The errors are joined
// *invalid.Errors of no field.
func ParseDefaultCallee(texts ...string) (DefaultCallee, error) {
	all := DefaultCallee{}
	var wrong []error
	for one := range strings.SplitSeq(strings.Join(texts, ","), ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		tenant, name, named := strings.Cut(one, "=")
		if !named {
			tenant, name = "", one
		}
		before, twice := all[tenant]
		switch {
		case named && access.ValidTenant(tenant) != nil, job.ValidName(name) != nil:
			wrong = append(wrong, invalid.Field("", one, wantCallee))
		case twice && named:
			wrong = append(wrong, invalid.Field("", one, fmt.Sprintf("each tenant once: %s=%s stands before it", tenant, before)))
		case twice:
			wrong = append(wrong, invalid.Field("", one, fmt.Sprintf("one job for all tenants: %s stands before it; TENANT=JOB is for one of them", before)))
		default:
			all[tenant] = name
		}
	}
	return all, errors.Join(wrong...)
}

// over gives what an event of a job calls: what its own word names, else the job of the tenant. That one itself calls nothing then.
func (b DefaultCallee) over(own *job.Callback, tenant, named string) *job.Callback {
	if own != nil || len(b) == 0 {
		return own
	}
	to, of := b[tenant]
	if !of {
		to = b[""]
	}
	if to == "" || to == named {
		return nil
	}
	return &job.Callback{Job: to}
}

// Over gives what a run calls whose definition says on: its own request's word goes before that, and the defaults go behind it. A step calls nothing.
func (c DefaultCallbacks) Over(r run.Run, on job.Callbacks) job.Callbacks {
	on = r.Callees.Over(on)
	if r.ID.IsStep() {
		return on
	}
	on.Failed = c.Failed.over(on.Failed, r.Tenant, r.ID.Job)
	on.Missed = c.Missed.over(on.Missed, r.Tenant, r.ID.Job)
	on.Recovered = c.Recovered.over(on.Recovered, r.Tenant, r.ID.Job)
	return on
}

// absences bounds how often it is said that a job which is called is not there: its callers may end by the thousand.
type absences struct {
	mu    sync.Mutex
	said  map[[2]string]bool // by tenant and job
	since time.Time
}

const (
	absentAgain = time.Hour // until the same job is named again
	mostAbsent  = 100       // named meanwhile
)

// news tells whether the absence of a job is to be said now.
func (a *absences) news(tenant, name string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said == nil || now.Sub(a.since) >= absentAgain {
		a.said, a.since = map[[2]string]bool{}, now
	}
	key := [2]string{tenant, name}
	if a.said[key] || len(a.said) >= mostAbsent {
		return false
	}
	a.said[key] = true
	return true
}
