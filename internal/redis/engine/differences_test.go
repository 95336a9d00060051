package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// A knownDifference is a known difference between the engine and Redis 8.0.2. docs/differences.md lists the same.
type knownDifference struct {
	name, reason string
	// How draws that can show it are handled: when selects the commands, how is the comparison of their replies. The commands of before make
	// the two servers alike where they might not be; those of after remove what may differ.
	when          func(c drawn) bool
	how           tolerance
	before, after func(c drawn) [][]string
}

// tolerance is how two replies may differ.
type tolerance uint8

const (
	same      tolerance = iota
	near                // numbers that are times, which may drift
	unordered           // the order of elements and of events may differ
	shape               // the contents of texts and numbers may differ
	anything
)

// differences are all known differences.
var differences = []knownDifference{
	{name: "ties in SORT ALPHA", how: anything, when: tiesInSort, after: clearStored,
		reason: "Redis leaves the order of elements with equal weights to its sorting algorithm, which LIMIT changes, and to the order of a table"},
	{name: "the order of tables", how: unordered, when: drawn.table, after: clearStored,
		reason: "SMEMBERS, HGETALL, KEYS, the SCAN family and SORT BY nosort walk a hash table: Redis in the order of its hash function's secret seed, the engine in that of its slots, which are also its cursors; so with a map that became a table of Lua"},
	{name: "chance", how: shape, when: chance, before: meetDead, after: clearPopped,
		reason: "SPOP, RANDOMKEY, SRANDMEMBER, HRANDFIELD and ZRANDMEMBER draw with other dice"},
	{name: "ranges by member of unequal scores", how: anything, when: unequalScores, after: clearRange,
		reason: "Redis's documentation leaves the reply undefined, and what its skip list finds then depends on its dice"},
	{name: "SORT and an error before it", when: sorts, before: func(drawn) [][]string { return [][]string{{"SCAN", "x"}} }, // which clears the error
		reason: "Redis's SORT takes the C library's error that an earlier command left, of a number out of range, for its own, and fails"},
	{name: "sizes", how: shape, when: sizes,
		reason: "MEMORY USAGE is what the engine itself uses; OBJECT IDLETIME and FREQ and TIME depend on the moment, and OBJECT REFCOUNT in a transaction on who else has the argument"},
	{name: "payloads", how: shape, when: payloads,
		reason: "DUMP writes collections in their plain forms and compresses nothing; each server restores what the other dumped"},
	{name: "random counts below -2^26", reason: "HRANDFIELD, SRANDMEMBER and ZRANDMEMBER refuse to reply so many elements, where Redis takes the memory and the minutes"},
	{name: "Lua", reason: "a script runs in another Lua machine, whose words differ in a few errors of the language (an index into nil), which takes a few texts that Redis refuses (the escape '\\300', 250 parentheses within each other; table.sort with an order that is none) and refuses a few that Redis takes (0x1p4 written out, chains of over 10,000 operators or calls, goto as a name, a comment that begins with --[= and is no long one, and functions with nearly 200 local variables that assign several at once); next takes any index of a list, what loadstring compiles is called user_script whatever its second argument says; what +, -, *, / and ^ compute is 0 where Redis has -0, and in Redis the constants 0 and -0 of a function are the same; a function may call itself 8,190 times within itself (Redis: nearly 20,000); the length of a list with holes may be another end of it, and a metatable's __len counts for tables; struct, cmsgpack, coroutine, string.dump, table.foreach and the settings of cjson (encode_sparse_array, encode_max_depth, new and so on) are not there, and cjson.decode takes no nan, inf or 0x10. math.random draws with other dice, and math.sin and its relatives, rarely also x^y and math.exp, end in another digit of 17. Compiling holds up all clients, so the text of a script may have 1 MB, and a function about 6,300 different constants and names, fewer if it uses them often. A script may hold 512 MB, where Redis gives it what the machine has, its reply may have 1,000,000 elements, and a list with one element at a large index has all those before it"},
	{name: "error({})", reason: "an error that is an empty table ends Redis 8.0.2 itself; here it is an error reply"},
	{name: "slips of Redis", reason: "RESTORE adds a TTL near 2^63 to the time of day without a check; CONFIG SET notify-keyspace-events that fails leaves n out of what it was. Here the one is over at once, and the other changes nothing"},
	{name: "list-max-listpack-size", reason: "CONFIG SET of it is for all lists; Redis goes on with what it was for those that are long already"},
	{name: "HELP and INFO", reason: "the texts of HELP are shorter; INFO is without what would not be true of the engine: how Redis was built, its threads and its event loop, what would have to be measured all the time; used_memory_rss and the allocator's are the whole process's"},
	{name: "modules", reason: "HELLO names no modules: vector sets are not there"},
	{name: "parameters and commands that are not there", reason: "CONFIG knows the parameters that change something here or that clients ask for; COMMAND lists what the engine has"},
}

// drawn is a command about to be run.
type drawn struct {
	*beside
	args   []string
	inside bool // in a transaction: the keys' contents when it runs are not known yet
	mapped bool // a script that makes Lua tables of maps
}

// judgement says how the replies to a command are compared, and which commands are played before and after it.
type judgement struct {
	how           tolerance
	before, after [][]string
}

func (b *beside) judge(args []string, inside bool) (j judgement) {
	c := drawn{b, innermost(args), inside, len(args) > 1 && strings.Contains(args[1], "setresp(3)")}
	if times(c) {
		j.how = near
	}
	for _, d := range differences {
		if d.when == nil || !d.when(c) {
			continue
		}
		j.how = max(j.how, d.how)
		if d.before != nil {
			j.before = append(j.before, d.before(c)...)
		}
		if d.after != nil {
			j.after = append(j.after, d.after(c)...)
		}
	}
	return j
}

// times reports whether a reply is about times, which differ between servers.
func times(c drawn) bool {
	return isName(c.args, "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME")
}

// called returns the command called by a drawn script.
func called(args []string) []string {
	if !isName(args, "EVAL", "EVAL_RO") || len(args) < 3 || !strings.Contains(args[1], "unpack(ARGV)") {
		return nil
	}
	n, err := strconv.Atoi(args[2])
	if err != nil || n < 0 || len(args) <= 3+n {
		return nil
	}
	return args[3+n:]
}

// innermost returns the command that is finally called.
func innermost(args []string) []string {
	if inner := called(args); inner != nil {
		return inner
	}
	return args
}

func isName(args []string, names ...string) bool {
	return slices.Contains(names, strings.ToUpper(args[0]))
}

// has reports whether one of the arguments is this word.
func (c drawn) has(word string) bool {
	return slices.ContainsFunc(c.args[1:], func(a string) bool { return strings.EqualFold(a, word) })
}

// find returns the object that the argument names, or nil.
func (c drawn) find(key string) *object {
	return c.engine.dbs[c.sessions[c.who].db].find([]byte(key))
}

// holds reports whether one of the arguments names an object with one of these encodings.
func (c drawn) holds(encodings ...string) bool {
	return c.inside || slices.ContainsFunc(c.args[1:], func(a string) bool {
		o := c.find(a)
		return o != nil && o.kind() != values.List && slices.Contains(encodings, o.encoding())
	})
}

// sorted reports whether one of the arguments names a sorted set.
func (c drawn) sorted() bool {
	return slices.ContainsFunc(c.args[1:], func(a string) bool {
		o := c.find(a)
		return o != nil && o.kind() == values.ZSet
	})
}

// table reports whether a reply has the order of a table, or may come from one.
func (c drawn) table() bool {
	fromTable := func() bool { return !c.strict && c.holds("listpack") }
	if c.mapped && !times(c) {
		return true
	}
	switch strings.ToUpper(c.args[0]) {
	case "HGETALL", "HKEYS", "HVALS", "HSCAN":
		return c.holds("hashtable")
	case "SMEMBERS", "SSCAN", "SINTER":
		return c.holds("hashtable") || fromTable()
	case "ZSCAN":
		return c.holds("skiplist")
	case "SORT", "SORT_RO":
		return c.holds("hashtable") || fromTable() || c.sorted()
	case "SUNION", "SDIFF":
		return !c.strict || c.holds("hashtable", "listpack")
	case "KEYS", "SCAN":
		return true
	case "CONFIG":
		return c.has("GET")
	}
	return false
}

func sorts(c drawn) bool { return isName(c.args, "SORT", "SORT_RO") }

func tiesInSort(c drawn) bool {
	if !sorts(c) || !c.has("BY") {
		return false
	}
	if c.has("ALPHA") {
		return c.has("LIMIT") || c.table()
	}
	return c.has("LIMIT") && c.table() // BY something without a star, which does not sort
}

// clearStored removes what SORT has stored.
func clearStored(c drawn) (lines [][]string) {
	for i, a := range c.args[:len(c.args)-1] {
		if strings.EqualFold(a, "STORE") {
			lines = append(lines, []string{"DEL", c.args[i+1]})
		}
	}
	return lines
}

func chance(c drawn) bool {
	return isName(c.args, "SPOP", "RANDOMKEY", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER")
}

// meetDead makes both servers remove the dead keys that RANDOMKEY may find.
func meetDead(c drawn) [][]string {
	if !isName(c.args, "RANDOMKEY") {
		return nil
	}
	return [][]string{append([]string{"EXISTS"}, universe...)}
}

func clearPopped(c drawn) [][]string {
	if !isName(c.args, "SPOP") || len(c.args) < 2 {
		return nil
	}
	return [][]string{{"DEL", c.args[1]}}
}

func unequalScores(c drawn) bool {
	if !strings.Contains(strings.ToUpper(c.args[0]), "LEX") && !c.has("BYLEX") {
		return false
	}
	return c.inside || slices.ContainsFunc(c.args[1:], func(a string) bool {
		o := c.find(a)
		if o == nil {
			return false
		}
		z, ok := o.coll.(*values.ZSetValue)
		return ok && unequal(z)
	})
}

func unequal(z *values.ZSetValue) bool {
	scores := map[float64]bool{}
	z.Each(0, z.Len(), false, func(_ string, score float64) bool {
		scores[score] = true
		return true
	})
	return len(scores) > 1
}

// clearRange removes what was stored, and what something was removed from.
func clearRange(c drawn) [][]string {
	if isName(c.args, "ZRANGESTORE", "ZREMRANGEBYLEX") && len(c.args) > 1 {
		return [][]string{{"DEL", c.args[1]}}
	}
	return nil
}

func sizes(c drawn) bool {
	return isName(c.args, "MEMORY", "TIME") || isName(c.args, "OBJECT") && (c.has("IDLETIME") || c.has("FREQ") || c.has("REFCOUNT") && c.inside)
}

// payloads reports whether a command is about payloads of collections, or of texts long enough to be compressed.
func payloads(c drawn) bool {
	if !isName(c.args, "DUMP") || len(c.args) < 2 {
		return false
	}
	o := c.find(c.args[1])
	return c.inside || o != nil && (o.coll != nil || len(o.str) > 20)
}

// compare returns the difference between the two replies, or nil.
func (x *exchange) compare() *mismatch {
	if x.how == anything {
		return nil
	}
	if !equal(x.got, x.want) && !x.tolerates() {
		return &mismatch{exchange: x, what: "reply"}
	}
	if x.how == unordered {
		slices.Sort(x.events)
		slices.Sort(x.wantEvents)
	}
	if !slices.Equal(x.events, x.wantEvents) {
		return &mismatch{exchange: x, what: "events"}
	}
	return nil
}

func (x *exchange) tolerates() bool {
	if x.got.Kind == '-' || x.want.Kind == '-' {
		return false
	}
	switch x.how {
	case near:
		return slices.EqualFunc(leaves(x.got), leaves(x.want), nearby)
	case unordered:
		got, want := leaves(x.got), leaves(x.want)
		slices.Sort(got)
		slices.Sort(want)
		return slices.Equal(got, want)
	case shape:
		return outline(x.got) == outline(x.want)
	}
	return false
}

func equal(a, b resp.Value) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.Int == b.Int && a.Null == b.Null && slices.EqualFunc(a.List, b.List, equal)
}

// drift is how far the two clocks may be apart, in milliseconds: a busy machine may pause between the two commands.
const drift = 5000

// nearby compares leaves, and allows times to drift.
func nearby(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseInt(strings.Trim(a, `:"`), 10, 64)
	y, errY := strconv.ParseInt(strings.Trim(b, `:"`), 10, 64)
	return errX == nil && errY == nil && x > 0 && y > 0 && !wasDrawn(x) && max(x-y, y-x) <= drift
}

// wasDrawn reports whether n is a time drawn by unixSeconds or unixMilliseconds, which both servers must return exactly.
func wasDrawn(n int64) bool {
	const second = 33_177_117_420
	return second <= n && n < second+10 || second*1000 <= n && n < (second+10)*1000
}

// leaves are the texts and numbers in a reply.
func leaves(v resp.Value) (all []string) {
	if len(v.List) == 0 {
		return []string{notation(v)}
	}
	for _, e := range v.List {
		all = append(all, leaves(e)...)
	}
	return all
}

// outline is a reply without its texts, and with only the signs of its numbers.
func outline(v resp.Value) string {
	parts := []string{string(v.Kind)}
	switch {
	case v.Null:
		parts[0] += "null"
	case v.Int < 0:
		parts[0] += "negative"
	}
	for _, e := range v.List {
		parts = append(parts, outline(e))
	}
	return "(" + strings.Join(parts, " ") + ")"
}
