package shop

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// crowd requests articles until it leaves. The same number arrives each second, whatever happens to those before: as in a real crowd, new
// members arrive even if earlier ones got no answer.
func (s *Shop) crowd() {
	c := s.catalogue
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last, asked := time.Now(), 0.0
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
		}
		now := time.Now()
		rate, article := c.wants()
		asked += min(now.Sub(last).Seconds(), 0.1) * rate // after the machine stalled nobody catches up
		last = now
		due := int(asked)
		asked -= float64(due)
		k := c.take(now, due, s.ctx.Err() != nil)
		if k == nil {
			return
		}
		for range due {
			go s.ask(k, article())
		}
	}
}

// wants returns how many articles the crowd requests per second, and a function that selects one.
func (c *catalogue) wants() (rate float64, article func() int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news {
		return 0.75 * float64(c.Workers) / c.Query.Seconds(), func() int { return c.Articles + rand.IntN(1<<30) }
	}
	return float64(c.Rate), func() int { return rand.IntN(c.Articles) }
}

// take returns the stock for n members of the crowd, each of whom calls using.Done at the end. When it is time to leave, it closes the stock and
// returns nil.
func (c *catalogue) take(now time.Time, n int, leaving bool) *stock {
	c.mu.Lock()
	k := c.stock
	if !leaving && now.Before(c.leaves) {
		k.using.Add(n)
		c.mu.Unlock()
		return k
	}
	c.stock = nil
	c.mu.Unlock()
	k.close()
	return nil
}

// ask is one member of the crowd, who requests an article.
func (s *Shop) ask(k *stock, article int) {
	defer k.using.Done()
	c := s.catalogue
	defer c.asking.Add(-1)
	if c.asking.Add(1) > crowdIs {
		c.givenUp.Add(1)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, crowdWaits)
	defer cancel()
	if _, err := k.cache.Get(ctx, article); err != nil {
		c.givenUp.Add(1)
	} else {
		c.answered.Add(1)
	}
}

// figures returns how many of the crowd were answered and how many were not, since the last call, and the present load.
func (c *catalogue) figures(now time.Time) (answered, givenUp int64, loads panel.Loads) {
	answered, givenUp = c.answered.Swap(0), c.givenUp.Swap(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stock != nil {
		o := c.stock.cache.Loads()
		loads = panel.Loads{AtDatabase: c.origin.unfinished(now), Limit: o.Limit, Queued: o.Queued}
	}
	return answered, givenUp, loads
}
