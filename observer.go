package mayfly

import (
	"context"
	"log/slog"
	"slices"
)

// Tee returns an Observer that passes each Event to all of observers in order. Nils are left out; Tee of none is nil,
// which costs nothing.
func Tee(observers ...Observer) Observer {
	all := slices.DeleteFunc(slices.Clone(observers), func(o Observer) bool { return o == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return ObserverFunc(func(ctx context.Context, e Event) {
		for _, o := range all {
			o.Observe(ctx, e)
		}
	})
}

// Slog returns an Observer that writes Events to l: a failure, a warning or a change of the breaker or the local
// tier's coherence at level Warn, everything else at Debug. What l does not log is not put together.
func Slog(l *slog.Logger) Observer {
	return ObserverFunc(func(ctx context.Context, e Event) {
		level := slog.LevelDebug
		switch {
		case e.Err != nil, e.Kind == Backend, e.Kind == Breaker, e.Kind == Coherence, e.Kind == Warning:
			level = slog.LevelWarn
		}
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := make([]slog.Attr, 0, 6)
		attrs = append(attrs, slog.String("namespace", e.Namespace), slog.String("outcome", string(e.Outcome)))
		if e.Key != "" {
			attrs = append(attrs, slog.String("key", e.Key))
		}
		if e.Took != 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.N != 0 {
			attrs = append(attrs, slog.Int("n", e.N))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("err", e.Err))
		}
		l.LogAttrs(ctx, level, "mayfly: "+e.Kind.String(), attrs...)
	})
}
