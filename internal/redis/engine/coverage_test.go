package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// coverage counts the commands compared: in total, and without an error.
type coverage struct {
	mu       sync.Mutex // guards the rest
	total    int
	families map[string]int
	commands map[string]*tally
	options  map[string]*tally // by command and option
}

type tally struct{ drawn, done int }

func newCoverage() *coverage {
	return &coverage{families: map[string]int{}, commands: map[string]*tally{}, options: map[string]*tally{}}
}

func (c *coverage) count(f *family, x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.families[f.name]++
	c.add(x.args, x.got.Kind != '-')
	if inner := called(x.args); inner != nil {
		c.add(inner, x.got.Kind != '-')
	}
}

func (c *coverage) add(args []string, done bool) {
	name := strings.ToLower(args[0])
	if cmd := commands[name]; cmd == nil {
		return
	} else if cmd.Sub != nil && len(args) > 1 {
		name += "|" + strings.ToLower(args[1])
	}
	at(c.commands, name).add(done)
	for _, option := range optionsOf[name] {
		if slices.ContainsFunc(args[1:], func(a string) bool { return strings.EqualFold(a, option) }) {
			at(c.options, name+" "+option).add(done)
		}
	}
}

func (t *tally) add(done bool) {
	t.drawn++
	if done {
		t.done++
	}
}

func at(m map[string]*tally, name string) *tally {
	if m[name] == nil {
		m[name] = new(tally)
	}
	return m[name]
}

// assert fails the test if a family has less than 1 % of all draws, or if a command or option was never drawn, or never without an error.
func (c *coverage) assert(t *testing.T) {
	for _, f := range families {
		if c.families[f.name]*100 < c.total {
			t.Errorf("of %d commands, %d were of the family of %s", c.total, c.families[f.name], f.name)
		}
	}
	check := func(name string, n *tally) {
		if n == nil || n.done == 0 && !alwaysFails[name] {
			t.Errorf("%s: never drawn with success", name)
		}
	}
	for name, cmd := range commands {
		if undrawn[name] != "" {
			continue
		}
		if cmd.Sub == nil {
			check(name, c.commands[name])
		}
		for _, sub := range cmd.Sub {
			if undrawn[sub.Name] == "" {
				check(sub.Name, c.commands[sub.Name])
			}
		}
	}
	for name, options := range optionsOf {
		for _, option := range options {
			check(name+" "+option, c.options[name+" "+option])
		}
	}
}

// String is a table of the draws: how often each command and option was drawn, and how often without an error.
func (c *coverage) String() string {
	var b strings.Builder
	for _, f := range families {
		fmt.Fprintf(&b, "%-13s %5.1f %%\n", f.name, 100*float64(c.families[f.name])/float64(c.total))
	}
	for _, name := range slices.Sorted(maps.Keys(c.commands)) {
		if n := c.commands[name]; n.drawn > 0 && !strings.Contains(name, "|foo") {
			fmt.Fprintf(&b, "%s %d/%d", name, n.done, n.drawn)
			for _, option := range optionsOf[name] {
				n := at(c.options, name+" "+option)
				fmt.Fprintf(&b, "  %s %d/%d", option, n.done, n.drawn)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// optionsOf are the option words of each command; all of them must be drawn.
var optionsOf = func() map[string][]string {
	m := map[string][]string{}
	for names, options := range map[string]string{
		"set":                                   "NX XX GET EX PX EXAT PXAT KEEPTTL",
		"getex":                                 "EX PX EXAT PXAT PERSIST",
		"lcs":                                   "LEN IDX MINMATCHLEN WITHMATCHLEN",
		"bitcount bitpos":                       "BYTE BIT",
		"bitop":                                 "AND OR XOR NOT",
		"bitfield":                              "GET SET INCRBY OVERFLOW WRAP SAT FAIL",
		"bitfield_ro":                           "GET",
		"expire pexpire expireat pexpireat":     "NX XX GT LT",
		"hexpire hpexpire hexpireat hpexpireat": "NX XX GT LT FIELDS",
		"httl hpttl hexpiretime hpexpiretime hpersist hgetdel": "FIELDS",
		"hgetex":                          "EX PX EXAT PXAT PERSIST FIELDS",
		"hsetex":                          "FNX FXX EX PX EXAT PXAT KEEPTTL FIELDS",
		"hrandfield":                      "WITHVALUES",
		"hscan":                           "MATCH COUNT NOVALUES",
		"sscan zscan":                     "MATCH COUNT",
		"scan":                            "MATCH COUNT TYPE",
		"copy":                            "DB REPLACE",
		"flushall flushdb":                "ASYNC SYNC",
		"restore":                         "REPLACE ABSTTL IDLETIME FREQ",
		"lpos":                            "RANK COUNT MAXLEN",
		"linsert":                         "BEFORE AFTER",
		"lmove blmove":                    "LEFT RIGHT",
		"lmpop blmpop":                    "LEFT RIGHT COUNT",
		"sintercard zintercard":           "LIMIT",
		"zadd":                            "NX XX GT LT CH INCR",
		"zrank zrevrank":                  "WITHSCORE",
		"zrange":                          "BYSCORE BYLEX REV LIMIT WITHSCORES",
		"zrangestore":                     "BYSCORE BYLEX REV LIMIT",
		"zrevrange":                       "WITHSCORES",
		"zrangebyscore zrevrangebyscore":  "WITHSCORES LIMIT",
		"zrangebylex zrevrangebylex":      "LIMIT",
		"zmpop bzmpop":                    "MIN MAX COUNT",
		"zrandmember":                     "WITHSCORES",
		"zunion zinter":                   "WEIGHTS AGGREGATE SUM MIN MAX WITHSCORES",
		"zunionstore zinterstore":         "WEIGHTS AGGREGATE SUM MIN MAX",
		"zdiff":                           "WITHSCORES",
		"sort":                            "BY GET LIMIT ASC DESC ALPHA STORE",
		"sort_ro":                         "BY GET LIMIT ASC DESC ALPHA",
		"script|flush":                    "ASYNC SYNC",
		"memory|usage":                    "SAMPLES",
		"client|no-touch client|no-evict": "ON OFF",
		"client|setinfo":                  "LIB-NAME LIB-VER",
	} {
		for _, name := range strings.Fields(names) {
			m[name] = strings.Fields(options)
		}
	}
	return m
}()

// alwaysFails are the commands for which a draw can only get errors.
var alwaysFails = map[string]bool{"script|kill": true}

// undrawn are the commands that other tests compare, with the reason.
var undrawn = func() map[string]string {
	m := map[string]string{}
	for names, why := range map[string]string{
		"auth hello quit": "a connection's beginning and end have a test of their own",
		"subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe client|tracking client|reply": "replies come unasked, or not at all",
		"client|id client|info client|list client|kill":                                                      "are about connections, which have other numbers",
		"cluster readonly readwrite asking":                                                                  "are compared with a cluster",
		"command|count command|info command|list":                                                            "every command's description has a test of its own",
		"psync sync replconf bgrewriteaof":                                                                   "are about replicas and files, for which package embedded asks a Redis",
		"waitaof":                                                                                            "has a test of its own: it waits",
		"info":                                                                                               "has figures of its own",
		"config|rewrite":                                                                                     "depends on how a server was started",
		"debug":                                                                                              "serves the comparison itself",
		"client|help command|help config|help memory|help object|help pubsub|help script|help": "are shorter here",
	} {
		for _, name := range strings.Fields(names) {
			m[name] = why
		}
	}
	return m
}()
