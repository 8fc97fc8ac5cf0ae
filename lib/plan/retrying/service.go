package retrying

import (
	"cmp"
	"context"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Service answers what a server is asked.
type Service struct{}

// Retry plays a policy. Its errors are joined *invalid.Errors by the fields of a job, or that of the context.
func (Service) Retry(ctx context.Context, asked wire.RetryQuestion) (wire.RetryPlan, error) {
	q, err := Question{Retry: asked.Retry, Takes: asked.Takes.Std(), Clients: cmp.Or(asked.Clients, Usual), Seed: cmp.Or(asked.Seed, 1)}.Check()
	if err != nil {
		return wire.RetryPlan{}, err
	}
	return Answer(ctx, q)
}
