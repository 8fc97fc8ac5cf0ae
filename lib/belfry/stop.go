package belfry

import (
	"bytes"
	"context"
	"errors"
	"runtime"
)

// Stop takes nothing more, waits for the handlers that run, and closes. When ctx ends before they have, their contexts end, and what
// they have not done is handed back: it goes on at the next start, without having used up an attempt. A run that is [AtMostOnce] is
// then [Unknown]. Stop then returns as soon as that is written. A handler that ignores its context is left behind after 5s.
//
// Stop may be called without Start, more than once, and by several goroutines at once. All calls wait for the same end and return
// the same error. The first of their contexts that ends is the one that ends the handlers.
//
// Called by a handler, Stop only begins to stop and returns nil at once, since it would wait for the very run that calls it. Of ctx only
// the deadline then counts: a handler's context ends with the handler. A goroutine that a handler starts and waits for must give Stop
// the handler's context. Another call of Stop, from elsewhere, waits for the end.
//
// Nothing that was accepted is lost by stopping early, or not at all; only "memory:" forgets.
func (b *Belfry) Stop(ctx context.Context) error {
	b.mu.Lock()
	was := b.phase
	b.phase = stopped
	b.mu.Unlock()
	if was != stopped {
		go b.end(was == started)
	}
	if b.byHandler(ctx) {
		if deadline, ok := ctx.Deadline(); ok {
			go func() {
				bound, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
				defer cancel()
				b.await(bound)
			}()
		}
		return nil
	}
	b.await(ctx)
	return b.ended
}

// end ends the work, where it was begun, and closes.
func (b *Belfry) end(working bool) {
	defer close(b.over)
	if working {
		b.stop()
		b.ended = <-b.worked
	}
	b.ended = errors.Join(b.ended, b.engine.close())
}

// await waits until all is closed. The end of ctx hurries it.
func (b *Belfry) await(ctx context.Context) {
	select {
	case <-b.over:
	case <-ctx.Done():
		b.engine.hurry()
		<-b.over // soon: what does not heed its context is left behind
	}
}

// handlerKey marks the contexts of a Belfry's handlers.
type handlerKey struct{ of *Belfry }

// call calls a handler, and notes that until it returns.
func (b *Belfry) call(ctx context.Context, handler func(context.Context) error) error {
	caller := goroutine()
	b.callers.Store(caller, nil)
	defer b.callers.Delete(caller)
	return handler(context.WithValue(ctx, handlerKey{b}, true))
}

// byHandler tells whether a handler waits for the caller: it has the handler's context, or is what the handler called, with whatever
// context.
func (b *Belfry) byHandler(ctx context.Context) bool {
	if ctx.Value(handlerKey{b}) != nil {
		return true
	}
	_, calls := b.callers.Load(goroutine())
	return calls
}

// goroutine returns the name of the calling goroutine. The runtime tells it in traces alone.
func goroutine() string {
	var trace [32]byte
	name, _, _ := bytes.Cut(trace[:runtime.Stack(trace[:], false)], []byte(" [")) // of "goroutine 18 [running]:"
	return string(name)
}
