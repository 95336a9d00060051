package shop

import (
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
	"github.com/mayflycache/mayfly/jitter"
)

// strategyOf is how products are kept.
func strategyOf(s panel.Settings) strategy.Strategy {
	way := strategy.Strategy{Lease: s.Lease, Local: s.Local}
	if s.Jitter {
		way.Jitter = jitter.Default
	}
	if s.Early {
		way.Early = earlyrefresh.XFetch(1)
	}
	return way
}

// needsOthers reports whether processes that run with now have to be replaced for next.
func needsOthers(now, next panel.Settings) bool {
	a, b := now.Effective(), next.Effective()
	a.Shoppers, a.Pause, a.Query, a.Connections = b.Shoppers, b.Pause, b.Query, b.Connections
	return a != b
}
