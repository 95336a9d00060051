package mayfly

import (
	"context"
	"log/slog"
	"slices"
)

// LocalObserver is an Observer that also counts hits in the local tier, which are no Events. ObserveLocal is called once by each
// cache that has a local tier, when it is made; hits returns how many hits it has had so far, at any time, also
// after the cache was closed.
type LocalObserver interface {
	Observer
	ObserveLocal(namespace string, hits func() uint64)
}

// Tee returns an Observer that passes each Event to all of observers in order, and local hits to those that count them. Nils
// are left out; Tee of none is nil, which costs nothing.
func Tee(observers ...Observer) Observer {
	all := slices.DeleteFunc(slices.Clone(observers), func(o Observer) bool { return o == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return tee(all)
}

type tee []Observer

func (t tee) Observe(ctx context.Context, e Event) {
	for _, o := range t {
		o.Observe(ctx, e)
	}
}

func (t tee) ObserveLocal(namespace string, hits func() uint64) {
	for _, o := range t {
		if local, ok := o.(LocalObserver); ok {
			local.ObserveLocal(namespace, hits)
		}
	}
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
