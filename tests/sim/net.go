package sim

import (
	"github.com/belfry-scheduler/belfry/lib/client"
)

// Client is a client of whatever host is up, as a tenant: each request goes to one of them by seed, over a network with faults. What it
// gives is what lib/client gives: *client.Error for a refusal, *client.Unreachable where no answer came.
func (w *World) Client(a *Actor, tenant string) *client.Client {
	return nil
}
