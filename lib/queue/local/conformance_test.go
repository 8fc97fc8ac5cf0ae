package local_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/queue/queuetest"
)

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(*testing.T) queue.Queue { return local.New(local.Config{}) })
}
