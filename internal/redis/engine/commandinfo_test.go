package engine

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// missingFlags are the flags of Redis that mean nothing to a client: notes for its own documentation and modules.
var missingFlags = []string{"+no_mandatory_keys", "+skip_monitor", "+skip_slowlog", "+no_async_loading"}

// Every command of the table is described as in Redis 8.0.2: arity, flags, keys, categories.
func TestCommandInfoIsRedis(t *testing.T) {
	r := newRealTarget(t, realServer(t))
	defer r.close()
	s := newStage(Options{})
	words := regexp.MustCompile(`^\[\["([^"]*)", (:-?\d+), \[([^\]]*)\], (:-?\d+), (:-?\d+), (:-?\d+), \[([^\]]*)\]`)
	parts := func(reply string) (name string, numbers []string, flags, categories []string) {
		m := words.FindStringSubmatch(reply)
		if m == nil {
			return reply, nil, nil, nil
		}
		set := func(list string) []string {
			all := strings.Split(list, ", ")
			all = slices.DeleteFunc(all, func(f string) bool { return f == "" || slices.Contains(missingFlags, f) })
			slices.Sort(all)
			return all
		}
		return m[1], []string{m[2], m[4], m[5], m[6]}, set(m[3]), set(m[7])
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		names := []string{name}
		for _, sub := range commands[name].Sub {
			names = append(names, sub.Name)
		}
		for _, name := range names {
			gotName, got, gotFlags, gotCats := parts(s.do("", "COMMAND", "INFO", name))
			wantName, want, wantFlags, wantCats := parts(r.do("", "COMMAND", "INFO", name))
			if gotName != wantName || !slices.Equal(got, want) {
				t.Errorf("%s: arity and keys %v, Redis has %v", gotName, got, want)
			}
			if !slices.Equal(gotFlags, wantFlags) {
				t.Errorf("%s: flags %v, Redis has %v", name, gotFlags, wantFlags)
			}
			if !slices.Equal(gotCats, wantCats) {
				t.Errorf("%s: categories %v, Redis has %v", name, gotCats, wantCats)
			}
		}
	}
}

func TestCommand(t *testing.T) {
	play(t, Options{}, `
		COMMAND GETKEYS get                             -ERR Invalid number of arguments specified for command
		COMMAND GETKEYS get a                           ["a"]
		COMMAND GETKEYS ping                            -ERR The command has no key arguments
		COMMAND GETKEYS client id                       -ERR The command has no key arguments
		COMMAND GETKEYS nosuch a                        -ERR Invalid command specified
		COMMAND GETKEYS mset a 1 b 2                    ["a", "b"]
		COMMAND LIST FILTERBY PATTERN getr*             ["getrange"]
		COMMAND LIST FILTERBY PATTERN object|e*         ["object|encoding"]
		COMMAND LIST FILTERBY MODULE x                  []
		COMMAND LIST FILTERBY FOO x                     -ERR syntax error
		COMMAND LIST FOO                                -ERR syntax error
		COMMAND FOO                                     -ERR unknown subcommand 'FOO'. Try COMMAND HELP.
		COMMAND COUNT x                                 -ERR wrong number of arguments for 'command|count' command
		COMMAND INFO nosuch                             [(nil array)]
		COMMAND INFO echo                               [["echo", :2, [+loading, +stale, +fast], :0, :0, :0, [+@fast, +@connection], [], [], []]]
	`)
}
