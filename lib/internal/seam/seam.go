// Package seam lets belfrytest put a *belfry.Belfry on parts of its own, without a word of it in what programs see.
package seam

import (
	"context"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Parts are what a Belfry of tests stands on.
type Parts struct {
	Control  *control.Service
	Handlers *target.Registry
	Now      func() time.Time
	Log      *slog.Logger
	Ready    func(context.Context) error
	Hurry    func()       // ends the contexts of handlers that run
	Close    func() error // waits for the handler that runs
}

// Over gives a *belfry.Belfry over the parts, which runs nothing by itself, and what tells whether it was told to stop: a handler that does so
// does not wait for Close. Package belfry sets it.
var Over func(Parts) (b any, stopped func() bool)
