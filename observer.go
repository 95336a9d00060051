package mayfly

import (
	"context"
	"slices"
)

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
		if local, ok := o.(interface {
			ObserveLocal(namespace string, hits func() uint64)
		}); ok {
			local.ObserveLocal(namespace, hits)
		}
	}
}
