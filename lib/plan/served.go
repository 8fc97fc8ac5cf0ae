package plan

import (
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
)

// Service answers what a server is asked, each within its bounds.
type Service struct {
	retrying.Service
	queueing.Bounded
}
