package engine

import "testing"

func TestConfig(t *testing.T) {
	play(t, Options{}, `
		CONFIG GET nothing                  []
		CONFIG GET hz HZ maxmemory-policy   ["hz", "10", "maxmemory-policy", "noeviction"]
		CONFIG GET lfu*                     ["lfu-decay-time", "1", "lfu-log-factor", "10"]
		CONFIG GET save                     ["save", ""]
		CONFIG GET appendonly               ["appendonly", "no"]
		CONFIG SET foo 1                    -ERR Unknown option or number of arguments for CONFIG SET - 'foo'
		CONFIG SET hz 20 foo 1              -ERR Unknown option or number of arguments for CONFIG SET - 'foo'
		CONFIG GET hz                       ["hz", "10"]
		CONFIG SET hz                       -ERR wrong number of arguments for 'config|set' command
		CONFIG SET hz 10 maxmemory          -ERR syntax error
		CONFIG SET hz abc                   -ERR CONFIG SET failed (possibly related to argument 'hz') - argument couldn't be parsed into an integer
		CONFIG SET hz 0                     +OK
		CONFIG SET hz 1000                  +OK
		CONFIG GET hz                       ["hz", "500"]
		CONFIG GET HZ h[z]                  ["HZ", "500"]
		CONFIG SET hz -1                    -ERR CONFIG SET failed (possibly related to argument 'hz') - argument must be between 0 and 2147483647 inclusive
		CONFIG SET hash-max-listpack-value 1kb   +OK
		CONFIG GET hash-max-listpack-value  ["hash-max-listpack-value", "1024"]
		CONFIG SET hz 10 HZ 20              -ERR CONFIG SET failed (possibly related to argument 'hz') - duplicate parameter
		CONFIG SET databases 3              -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
		CONFIG SET maxmemory 1x             -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
		CONFIG SET maxmemory -1             -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
		CONFIG SET maxmemory 100mb          +OK
		CONFIG GET maxmemory                ["maxmemory", "104857600"]
		CONFIG SET maxmemory 1k             +OK
		CONFIG GET maxmemory                ["maxmemory", "1000"]
		CONFIG SET maxmemory ""             +OK
		CONFIG GET maxmemory                ["maxmemory", "0"]
		CONFIG SET lazyfree-lazy-expire x   -ERR CONFIG SET failed (possibly related to argument 'lazyfree-lazy-expire') - argument must be 'yes' or 'no'
		CONFIG SET active-expire-effort 11  -ERR CONFIG SET failed (possibly related to argument 'active-expire-effort') - argument must be between 1 and 10 inclusive
		CONFIG SET proto-max-bulk-len 1     -ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be between 1048576 and 9223372036854775807 inclusive
		CONFIG SET maxmemory-policy foo     -ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
		CONFIG SET notify-keyspace-events Q     -ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.
		CONFIG SET notify-keyspace-events KEA   +OK
		CONFIG GET notify-keyspace-events   ["notify-keyspace-events", "AKE"]
		CONFIG SET notify-keyspace-events AKEnm  +OK
		CONFIG GET notify-keyspace-events   ["notify-keyspace-events", "AKEm"]
		CONFIG SET notify-keyspace-events Kg$x  +OK
		CONFIG GET notify-keyspace-events   ["notify-keyspace-events", "g$xK"]
		CONFIG RESETSTAT                    +OK
		CONFIG REWRITE                      -ERR The server is running without a config file
		CONFIG FOO                          -ERR unknown subcommand 'FOO'. Try CONFIG HELP.
	`)
}

func TestEveryParameterTakesItsOwnValue(t *testing.T) {
	e := New(Options{})
	for name, p := range parameters {
		if p.parse == nil {
			continue
		}
		if set, wrong := p.parse(p.get(e)); wrong != "" {
			t.Errorf("%s refuses its own value %q: %s", name, p.get(e), wrong)
		} else {
			before := p.get(e)
			set(e)
			if p.get(e) != before {
				t.Errorf("%s: %q became %q", name, before, p.get(e))
			}
		}
	}
}
