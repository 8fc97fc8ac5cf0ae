package awstarget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/belfry-scheduler/belfry/lib/target"
)

const (
	maxRoles = 1000            // remembered at once, a few KB each
	nearEnd  = 2 * time.Minute // credentials are asked for anew this long before they end: a clock may be off by one
	asking   = 10 * time.Second
)

// role is what credentials are remembered for. The tenant is part of it: a role may trust one tenant's external ID and not
// another's.
type role struct{ arn, region, tenant string }

// roles remembers the credentials of the roles that jobs name.
type roles struct {
	sts *sts.Client

	mu    sync.Mutex
	known map[role]*aws.CredentialsCache
}

func newRoles(client *sts.Client) *roles {
	return &roles{sts: client, known: map[role]*aws.CredentialsCache{}}
}

// ExternalID is what a role is asked for with on behalf of a tenant. The tenant cannot choose it, so that a role which wants it
// cannot be used by another tenant who knows its name.
func ExternalID(tenant string) string { return "belfry:" + tenant }

// sessionName is shown in the account's log of requests. Credentials serve many runs, so it names whose they are and no run.
func sessionName(tenant string) string {
	const longest = 64
	name := "belfry-" + tenant
	return name[:min(len(name), longest)]
}

func (r *roles) cache(of role) *aws.CredentialsCache {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cached, ok := r.known[of]; ok {
		return cached
	}
	if len(r.known) >= maxRoles {
		for any := range r.known { // whichever: it is asked for again when it is needed
			delete(r.known, any)
			break
		}
	}
	provider := stscreds.NewAssumeRoleProvider(inRegion{r.sts, of.region}, of.arn, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = sessionName(of.tenant)
		o.ExternalID = aws.String(ExternalID(of.tenant))
	})
	cached := aws.NewCredentialsCache(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = nearEnd })
	r.known[of] = cached
	return cached
}

// credentials asks for a role, within a bound of its own: the attempt's timeout may be hours.
func (r *roles) credentials(ctx context.Context, arn, region, tenant string) (aws.CredentialsProvider, error) {
	cached := r.cache(role{arn, region, tenant})
	ctx, cancel := context.WithTimeoutCause(ctx, asking, errSlow)
	defer cancel()
	_, err := cached.Retrieve(ctx)
	switch {
	case err == nil:
		return cached, nil
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow):
		return nil, unsent(ctx)
	case target.Short(err) != nil:
		return nil, target.Short(err)
	}
	return nil, refusedRole(err, arn, tenant)
}

var errSlow = errors.New("STS did not answer in time")

// refusedRole is a failure before anything was asked of the target. A role that is refused stays so until somebody changes it.
func refusedRole(err error, arn, tenant string) *target.Failure {
	code, status, text := told(err)
	if kindOf(code, status) != forGood {
		return target.Reported(target.KindConnect, fmt.Sprintf("take the role %s: %s", arn, text), false, 0)
	}
	return target.Reported(target.KindAWS, fmt.Sprintf("take the role %s: %s; it must trust this worker's role with the external ID %s, and that one must be allowed sts:AssumeRole on it",
		arn, text, ExternalID(tenant)), true, 0)
}

// inRegion asks STS in the region of the target, which is one that the account has opened.
type inRegion struct {
	client *sts.Client
	region string
}

func (i inRegion) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, opts ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	return i.client.AssumeRole(ctx, in, append(opts, func(o *sts.Options) { o.Region = i.region })...)
}
