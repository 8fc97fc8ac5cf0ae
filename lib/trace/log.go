package trace

import (
	"context"
	"log/slog"
	"slices"
)

// Tell says what the work under way in ctx is about: its lines in the log have it. What is said later of the same thing counts. Names
// that the log uses are request_id, tenant, job, run and attempt.
func Tell(ctx context.Context, about ...slog.Attr) context.Context {
	above, _ := ctx.Value(told{}).(*telling)
	return context.WithValue(ctx, told{}, &telling{above, about})
}

type told struct{}

// telling is put together when a line is logged: most work logs none.
type telling struct {
	above *telling
	about []slog.Attr
}

func toldBy(ctx context.Context) (known []slog.Attr) {
	for t, _ := ctx.Value(told{}).(*telling); t != nil; t = t.above {
		known = append(slices.DeleteFunc(slices.Clone(t.about), func(a slog.Attr) bool {
			return slices.ContainsFunc(known, func(b slog.Attr) bool { return a.Key == b.Key })
		}), known...)
	}
	return known
}

// Log gives a handler that adds to each line what was told of its context, and the trace that it is part of. What the line says by
// itself is not said twice.
func Log(to slog.Handler) slog.Handler { return handler{to} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, line slog.Record) error {
	about := toldBy(ctx)
	id := From(ctx).ID()
	if len(about) == 0 && id == "" {
		return h.Handler.Handle(ctx, line)
	}
	line = line.Clone()
	says := make(map[string]bool, line.NumAttrs())
	line.Attrs(func(a slog.Attr) bool {
		says[a.Key] = true
		return true
	})
	for _, a := range about {
		if !says[a.Key] {
			line.AddAttrs(a)
		}
	}
	if id != "" && !says["trace"] {
		line.AddAttrs(slog.String("trace", id))
	}
	return h.Handler.Handle(ctx, line)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
