package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/metrics"
)

// reached is the Redis that a command uses: the one named by --redis, else an embedded one.
type reached struct {
	url      string
	dir      string // where an embedded one keeps its data; empty: nowhere
	options  *redis.Options
	db       *embedded.DB // nil with a real one
	version  string       // of a real one
	noFields bool         // the server does not support TTLs of hash fields
}

func (r *reached) flag(flags *flagSet) {
	flags.StringVar(&r.url, "redis", "", "the `URL` of a Redis 7.0 or newer, such as redis://localhost:6379 (default an embedded one)")
}

// oldest is the lowest major version of Redis that mayfly supports.
const oldest = 7

// open finds out whether the server answers and is new enough.
func (r *reached) open(ctx context.Context) error {
	logging.Disable() // the command reports errors itself
	if r.url == "" {
		db, err := embedded.Open(embedded.Options{Dir: r.dir})
		if err != nil {
			return err
		}
		o := *db.Client().Options()
		r.db, r.options = db, &o
		return nil
	}
	o, err := parseURL("--redis", r.url)
	if err != nil {
		return err
	}
	probing := *o
	endsWith(ctx, &probing)
	endsWith(shortlyAfter(ctx), o)
	r.options = o
	rdb := redis.NewClient(&probing)
	defer rdb.Close()
	ask, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	info, err := rdb.Info(ask, "server").Result()
	var refused *net.OpError
	switch {
	case err != nil && ctx.Err() != nil:
		return errToldToEnd
	case errors.As(err, &refused), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no Redis answers at %s (%v): start one, or leave --redis out for an embedded one", o.Addr, err)
	case err != nil:
		return fmt.Errorf("the Redis at %s: %w", o.Addr, err)
	}
	name, major := "Redis", 0
	r.version = field(info, "redis_version")
	if v := field(info, "valkey_version"); v != "" {
		name, r.version = "Valkey", v
	}
	if fmt.Sscanf(r.version, "%d.", &major); major < oldest {
		return fmt.Errorf("the %s at %s is %s: mayfly needs Redis %d.0 or newer, or Valkey", name, o.Addr, r.version, oldest)
	}
	r.noFields = rdb.Do(ask, "HPTTL", "mayfly-demo:nosuch", "FIELDS", 1, "f").Err() != nil
	r.version = name + " " + r.version
	return nil
}

// field returns a field of INFO's text; empty if it is missing. (go-redis's InfoMap panics where a proxy leaves out the headings.)
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// parseURL returns the options of a client for url, which the command line gave as name. Its error does not show the URL, which may have a
// password in it.
func parseURL(name, url string) (*redis.Options, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		why := err.Error()
		if i := strings.LastIndex(why, `": `); strings.HasPrefix(why, "parse ") && i >= 0 {
			why = why[i+3:]
		}
		return nil, fmt.Errorf("%s cannot be used: %s; it must be like redis://user:password@host:6379/0 (%w)", name, why, errUsage)
	}
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // the user may lack the permission
	return o, nil
}

// client returns a new client with room for this many connections.
func (r *reached) client(connections int) *redis.Client {
	o := *r.options
	o.PoolSize = max(o.PoolSize, connections)
	return redis.NewClient(&o)
}

// metrics returns an observer and the handler that serves its figures to Prometheus, including those of an embedded Redis.
func (r *reached) metrics() (*metrics.Observer, http.Handler, error) {
	registry := prometheus.NewRegistry()
	observer, err := metrics.New(registry, metrics.Options{})
	if err == nil && r.db != nil {
		observer.WatchEngine("demo", r.db.Stats)
	}
	return observer, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

func (r *reached) name() string {
	if r.db != nil {
		return "an embedded Redis"
	}
	return r.version + " at " + r.options.Addr
}

func (r *reached) close(ctx context.Context) error {
	if r.db == nil {
		return nil
	}
	return r.db.Close(ctx)
}
