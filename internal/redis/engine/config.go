package engine

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/glob"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// configCommands are CONFIG and its subcommands.
var configCommands = []Command{{Name: "config", Arity: -2, Sub: []Command{
	{Name: "config|get", Arity: -3, Flags: Admin | NoScript | Loading | Stale, run: configGetCommand},
	{Name: "config|set", Arity: -4, Flags: Admin | NoScript | Loading | Stale, run: configSetCommand},
	{Name: "config|resetstat", Arity: 2, Flags: Admin | NoScript | Loading | Stale, run: configResetstatCommand},
	{Name: "config|rewrite", Arity: 2, Flags: Admin | NoScript | Loading | Stale, run: func(c *call) { c.fail("ERR The server is running without a config file") }},
	{Name: "config|help", Arity: 2, Flags: Loading | Stale, run: func(c *call) {
		c.help(`
GET <pattern>
    Return parameters matching the glob-like <pattern> and their values.
SET <directive> <value>
    Set the configuration <directive> to <value>.
RESETSTAT
    Reset statistics reported by the INFO command.
REWRITE
    Rewrite the configuration file.`)
	}},
}}}

// parameter is one name that CONFIG knows. parse checks a value and returns how to set it, or Redis's words for what is wrong; it is nil for
// a parameter that cannot be changed.
type parameter struct {
	get   func(e *Engine) string
	parse func(value string) (set func(e *Engine), wrong string)
	check func(e *Engine, value string) (wrong string) // instead of parse: accepts only the present value
}

// parameters are what CONFIG GET shows: the settings that the engine obeys, and those that clients are known to ask for.
var parameters = map[string]parameter{
	"maxmemory":               {get: func(e *Engine) string { return decimalText(e.settings.maxMemory) }, parse: parseMemory(0, (*Engine).limitMemory)},
	"maxmemory-policy":        {get: func(e *Engine) string { return Policies[e.settings.policy] }, parse: parsePolicy},
	"maxmemory-samples":       counted(1, 64, func(e *Engine) *int { return &e.settings.samples }),
	"notify-keyspace-events":  {get: func(e *Engine) string { return e.settings.notify.String() }, parse: parseNotify},
	"hz":                      {get: func(e *Engine) string { return strconv.Itoa(e.settings.hz) }, parse: parseHz},
	"active-expire-effort":    counted(1, 10, func(e *Engine) *int { return &e.settings.effort }),
	"lazyfree-lazy-expire":    yesNo(func(e *Engine) *bool { return &e.settings.lazyExpire }),
	"lfu-log-factor":          counted(0, math.MaxInt32, func(e *Engine) *int { return &e.settings.lfuLogFactor }),
	"lfu-decay-time":          counted(0, math.MaxInt32, func(e *Engine) *int { return &e.settings.lfuDecayTime }),
	"tracking-table-max-keys": counted(0, math.MaxInt64, func(e *Engine) *int { return &e.settings.trackingKeys }),
	"proto-max-bulk-len":      sized(1<<20, func(e *Engine) *int64 { return &e.settings.maxBulk }),
	"requirepass": {
		get: func(e *Engine) string { return e.settings.password },
		parse: func(v string) (func(*Engine), string) {
			return func(e *Engine) { e.settings.password = v }, ""
		},
	},
	"masterauth":           text(func(e *Engine) *string { return &e.settings.masterPassword }),
	"masteruser":           text(func(e *Engine) *string { return &e.settings.masterUser }),
	"replica-read-only":    fixed("yes"),
	"protected-mode":       yesNo(func(e *Engine) *bool { return &e.settings.protected }),
	"busy-reply-threshold": counted(0, math.MaxInt64, func(e *Engine) *int64 { return &e.settings.busyAfter }),
	"lua-time-limit":       counted(0, math.MaxInt64, func(e *Engine) *int64 { return &e.settings.busyAfter }),

	"hash-max-listpack-entries": counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.HashMaxListpackEntries }),
	"hash-max-listpack-value":   sized(0, func(e *Engine) *int { return &e.limits.HashMaxListpackValue }),
	"hash-max-ziplist-entries":  counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.HashMaxListpackEntries }),
	"hash-max-ziplist-value":    sized(0, func(e *Engine) *int { return &e.limits.HashMaxListpackValue }),
	"list-max-listpack-size":    counted(math.MinInt32, math.MaxInt32, func(e *Engine) *int { return &e.limits.ListMaxListpackSize }),
	"list-max-ziplist-size":     counted(math.MinInt32, math.MaxInt32, func(e *Engine) *int { return &e.limits.ListMaxListpackSize }),
	"set-max-intset-entries":    counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.SetMaxIntsetEntries }),
	"set-max-listpack-entries":  counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.SetMaxListpackEntries }),
	"set-max-listpack-value":    counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.SetMaxListpackValue }),
	"zset-max-listpack-entries": counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.ZSetMaxListpackEntries }),
	"zset-max-listpack-value":   sized(0, func(e *Engine) *int { return &e.limits.ZSetMaxListpackValue }),
	"zset-max-ziplist-entries":  counted(0, math.MaxInt64, func(e *Engine) *int { return &e.limits.ZSetMaxListpackEntries }),
	"zset-max-ziplist-value":    sized(0, func(e *Engine) *int { return &e.limits.ZSetMaxListpackValue }),

	// What cannot be changed here.
	"cluster-enabled": {get: func(e *Engine) string { return yesOrNo(e.options.Cluster != nil) }},
	"databases": {get: func(e *Engine) string {
		if e.options.Cluster != nil {
			return "1"
		}
		return strconv.Itoa(Databases)
	}},
	"appendonly":                 {get: func(e *Engine) string { return yesOrNo(e.log != nil) }, check: checkAppendonly},
	"appendfsync":                {get: (*Engine).fsync, parse: parseAppendfsync},
	"dir":                        {get: (*Engine).dir},
	"appenddirname":              fixed("appendonlydir"),
	"appendfilename":             fixed("appendonly.aof"),
	"save":                       fixed(""),
	"timeout":                    fixed("0"),
	"maxclients":                 fixed("10000"),
	"client-output-buffer-limit": fixed("normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
}

// text is a parameter that takes any string.
func text(at func(e *Engine) *string) parameter {
	return parameter{
		get:   func(e *Engine) string { return *at(e) },
		parse: func(v string) (func(*Engine), string) { return func(e *Engine) { *at(e) = v }, "" },
	}
}

func fixed(value string) parameter { return parameter{get: func(*Engine) string { return value }} }

const wrongInteger = "argument couldn't be parsed into an integer"

func decimalText(n int64) string { return strconv.FormatInt(n, 10) }

func between(low, high int64) string {
	return "argument must be between " + decimalText(low) + " and " + decimalText(high) + " inclusive"
}

// counted is a parameter that takes a whole number between two bounds.
func counted[T int | int64](low, high int64, at func(e *Engine) *T) parameter {
	return parameter{
		get: func(e *Engine) string { return decimalText(int64(*at(e))) },
		parse: func(value string) (func(*Engine), string) {
			n, wrong := parseNumber(value, low, high)
			return func(e *Engine) { *at(e) = T(n) }, wrong
		},
	}
}

// sized is a parameter that takes a number of bytes, at least low.
func sized[T int | int64](low int64, at func(e *Engine) *T) parameter {
	return parameter{
		get:   func(e *Engine) string { return decimalText(int64(*at(e))) },
		parse: parseMemory(low, func(e *Engine, n int64) { *at(e) = T(n) }),
	}
}

func parseNumber(value string, low, high int64) (n int64, wrong string) {
	n, ok := values.ParseInt([]byte(value))
	switch {
	case !ok:
		return 0, wrongInteger
	case n < low || n > high:
		return 0, between(low, high)
	}
	return n, ""
}

// parseHz accepts any number from 0 on and clamps it as Redis does.
func parseHz(value string) (func(*Engine), string) {
	n, wrong := parseNumber(value, 0, math.MaxInt32)
	return func(e *Engine) { e.settings.hz = int(min(max(n, 1), 500)) }, wrong
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func yesNo(at func(e *Engine) *bool) parameter {
	return parameter{
		get: func(e *Engine) string { return yesOrNo(*at(e)) },
		parse: func(value string) (func(*Engine), string) {
			value = strings.ToLower(value)
			if value != "yes" && value != "no" {
				return nil, "argument must be 'yes' or 'no'"
			}
			return func(e *Engine) { *at(e) = value == "yes" }, ""
		},
	}
}

// parseMemory reads a number of bytes with or without a unit: 1k is 1000, 1kb is 1024. An empty value is 0, as in Redis.
func parseMemory(low int64, set func(e *Engine, n int64)) func(string) (func(*Engine), string) {
	units := map[string]int64{"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1000_000, "mb": 1 << 20, "g": 1000_000_000, "gb": 1 << 30}
	return func(value string) (func(*Engine), string) {
		digits := strings.TrimRight(strings.ToLower(value), "bkmg")
		unit, known := units[strings.ToLower(value[len(digits):])]
		n, err := strconv.ParseUint(digits, 10, 64)
		switch {
		case !known || err != nil && digits != "":
			return nil, "argument must be a memory value"
		case n > math.MaxInt64/uint64(unit) || int64(n)*unit < low:
			return nil, between(low, math.MaxInt64)
		}
		return func(e *Engine) { set(e, int64(n)*unit) }, ""
	}
}

func parsePolicy(value string) (func(*Engine), string) {
	at := slices.Index(Policies, strings.ToLower(value))
	if at < 0 {
		return nil, "argument(s) must be one of the following: " + strings.Join(Policies, ", ")
	}
	return func(e *Engine) { e.settings.policy = policy(at) }, ""
}

func parseNotify(value string) (func(*Engine), string) {
	class, ok := parseClasses(value)
	if !ok {
		return nil, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
	}
	return func(e *Engine) { e.settings.notify = class }, ""
}

// configGetCommand shows each parameter once, under the first name that matched it.
func configGetCommand(c *call) {
	var found []string
	show := func(name string) {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.EqualFold(f, name) }) {
			found = append(found, name)
		}
	}
	for _, arg := range c.args[2:] {
		pattern := strings.ToLower(string(arg))
		if _, ok := parameters[pattern]; ok {
			show(string(arg))
		}
		if strings.ContainsAny(pattern, "*?[") {
			matcher := glob.Compile([]byte(pattern))
			for _, name := range slices.Sorted(maps.Keys(parameters)) {
				if matcher.Match([]byte(name)) {
					show(name)
				}
			}
		}
	}
	c.out.Map(len(found))
	for _, name := range found {
		c.out.BulkString(name)
		c.out.BulkString(parameters[strings.ToLower(name)].get(c.e))
	}
}

// configSetCommand sets all of its parameters or none.
func configSetCommand(c *call) {
	if len(c.args)%2 != 0 {
		c.fail(errSyntax)
		return
	}
	changes := make(map[string]func(*Engine)) // by parameter name
	for i := 2; i < len(c.args); i += 2 {
		name := strings.ToLower(string(c.args[i]))
		p, ok := parameters[name]
		if !ok {
			c.failf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", c.args[i])
			return
		}
		var set func(*Engine)
		wrong := "can't set immutable config"
		switch {
		case p.check != nil:
			set, wrong = func(*Engine) {}, p.check(c.e, string(c.args[i+1]))
		case p.parse == nil:
		case changes[name] != nil:
			wrong = "duplicate parameter"
		default:
			set, wrong = p.parse(string(c.args[i+1]))
		}
		if wrong != "" {
			c.failf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, wrong)
			return
		}
		changes[name] = set
	}
	for i := 2; i < len(c.args); i += 2 {
		changes[strings.ToLower(string(c.args[i]))](c.e)
	}
	c.ok()
}

func configResetstatCommand(c *call) {
	c.e.stats = stats{}
	c.ok()
}
