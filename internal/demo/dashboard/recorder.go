package dashboard

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// Every is the time between two sets of figures, each of which is sent to browsers.
const Every = time.Second / 4

const (
	live = 240  // moments shown to a browser that connects later: a minute
	most = 4800 // moments in a report: 20 minutes
)

// moment is what the page draws. Rates are per second.
type moment struct {
	At       int64   `json:"at"` // ms since the start
	Pages    float64 `json:"pages"`
	Rendered float64 `json:"rendered"`
	Queries  float64 `json:"queries"`
	Asked    int64   `json:"asked"` // queries since the beginning
	Worst    int     `json:"worst"`
	// What the callers who asked for pages got, each counted once.
	FromMemory float64 `json:"fromMemory"`
	FromRedis  float64 `json:"fromRedis"`
	Stale      float64 `json:"stale"`
	Waited     float64 `json:"waited"`
	Failed     float64 `json:"failed"`

	P50      float64 `json:"p50"` // ms
	P99      float64 `json:"p99"`
	Answered float64 `json:"answered"`
	GivenUp  float64 `json:"givenUp"`
	panel.State
	panel.Loads
	Lost     int64            `json:"lost"` // carts, since the beginning
	Redis    string           `json:"redis"`
	Slow     float64          `json:"slow"`               // s for which the databases are slow
	Settings map[string]int64 `json:"settings,omitempty"` // when they changed
	Mark     string           `json:"mark,omitempty"`     // what somebody did

	figures panel.Figures // all figures
	event   string        // what was done to the shop, if anything
	way     string        // the strategy, if settings changed
}

// Recorder reads a shop's figures four times a second, keeps them, and passes them to its listeners.
type Recorder struct {
	shop Shop

	mu        sync.Mutex // guards the fields below
	begun     time.Time
	moments   []moment
	marks     string
	event     string
	set       panel.Settings // at the last moment; valid settings are never zero
	asked     int64          // total queries so far
	lost      int64          // total lost carts so far
	listeners map[chan moment]bool
}

// NewRecorder returns a recorder that records nothing before Run.
func NewRecorder(s Shop) *Recorder {
	return &Recorder{shop: s, begun: time.Now(), listeners: make(map[chan moment]bool)}
}

// Run records figures until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	r.shop.Figures(ctx) // discards the figures from before
	last := time.Now()
	for {
		select {
		case <-tick.C:
			if time.Since(last) < Every/2 { // the machine stalled: a rate over so short a time would mean nothing
				continue
			}
			last = time.Now()
			r.take(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Mark records what somebody did, for the charts.
func (r *Recorder) Mark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.marks != "" {
		text = r.marks + ", " + text
	}
	r.marks = text
}

// Pressed records that a button was pressed, and what happened then.
func (r *Recorder) Pressed(b panel.Button, says string) {
	r.Mark(says)
	if b == panel.TwoMore || says == panel.RedisIsBack {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.event != "" {
		says = r.event + ", " + says
	}
	r.event = says
}

func (r *Recorder) take(ctx context.Context) {
	f, set := r.shop.Figures(ctx), r.shop.Settings()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.momentLocked(f, set)
	r.moments = append(r.moments, m)
	if len(r.moments) > most {
		r.moments = slices.Clone(r.moments[most/2:])
	}
	for to := range r.listeners {
		select {
		case to <- m:
		default: // a browser that does not read misses some moments
		}
	}
}

func (r *Recorder) momentLocked(f panel.Figures, set panel.Settings) moment {
	per := func(n int64) float64 { return math.Round(10*float64(n)/max(f.For.Seconds(), 0.01)) / 10 }
	r.asked += f.Queries
	r.lost += f.Lost
	m := moment{
		At: time.Since(r.begun).Milliseconds(), Pages: per(f.Pages), Rendered: per(f.Rendered),
		Queries: per(f.Queries), Asked: r.asked, Worst: f.Worst,
		FromMemory: per(f.FromMemory), FromRedis: per(f.FromRedis), Stale: per(f.Stale), Waited: per(f.Waited), Failed: per(f.Failed),
		P50: ms(f.P50), P99: ms(f.P99), Answered: per(f.Answered), GivenUp: per(f.GivenUp), State: f.State, Loads: f.Loads, Lost: r.lost, Redis: string(f.Redis), Mark: r.marks,
		Slow: math.Round(10*f.Slow.Seconds()) / 10, figures: f, event: r.event,
	}
	r.marks, r.event = "", ""
	if set != r.set {
		r.set = set
		m.Settings, m.way = values(set), strategyOf(set)
	}
	return m
}

// listen returns the recorded moments, and a channel of new ones until stop is called.
func (r *Recorder) listen() (history []moment, coming <-chan moment, stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan moment, 8)
	r.listeners[c] = true
	return r.historyLocked(live), c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, c)
	}
}

// historyLocked returns the last n moments. The first of them has the settings as they were then.
func (r *Recorder) historyLocked(n int) []moment {
	from := max(0, len(r.moments)-n)
	history := append([]moment{}, r.moments[from:]...)
	for i := from; i >= 0 && i < len(r.moments); i-- {
		if s := r.moments[i].Settings; s != nil {
			history[0].Settings = s
			break
		}
	}
	return history
}
