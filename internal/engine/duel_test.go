package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/engine/values"
)

var duelCommands = flag.Int("duel", 3000, "commands of a family to compare with a real Redis, in each protocol")

// A duel plays drawn commands on a stage and on a real Redis and compares all that can be seen: the reply, the keyspace events, and of
// every key its encoding, whether it has a deadline, and from time to time what it holds.
type duel struct {
	*testing.T
	stage *stage
	real  *realTarget
	keys  []string
	// strict: no set becomes a table, so that the order of small ones, some of which may come out of a table, is defined.
	strict bool
	last   []string // the commands before, to show
}

// The limits of a duel are low, so that it sees both forms of everything.
var duelLimits = values.Limits{
	HashMaxListpackEntries: 8, HashMaxListpackValue: 12, ListMaxListpackSize: 8,
	SetMaxIntsetEntries: 6, SetMaxListpackEntries: 8, SetMaxListpackValue: 12,
	ZSetMaxListpackEntries: 8, ZSetMaxListpackValue: 12,
}

// A family's duel is fought with low and with Redis's own limits.
var bothLimits = []values.Limits{duelLimits, values.DefaultLimits}

func duelWith(t *testing.T, keys []string, limits []values.Limits, draw func(*rand.Rand) []string) {
	addr := realServer(t)
	for _, limits := range limits {
		for _, proto := range []string{"2", "3"} {
			seed := uint64(time.Now().UnixNano())
			t.Logf("RESP%s, seed %d", proto, seed)
			strict := limits == values.DefaultLimits
			d := duel{T: t, strict: strict, stage: newStage(Options{Seed: seed}), real: newRealTarget(t, addr), keys: keys}
			d.start(proto, limits)
			r := rand.New(rand.NewPCG(seed, 0))
			for i := range *duelCommands {
				args := draw(r)
				for strict && len(args) > 100 {
					args = draw(r)
				}
				d.step(args)
				if i%50 == 0 {
					d.compareContents()
				}
				if t.Failed() {
					break
				}
			}
			d.real.close()
			if t.Failed() {
				return
			}
		}
	}
}

func (d *duel) start(proto string, l values.Limits) {
	d.stage.now = time.Now().UnixMicro()
	d.stage.limits = l
	d.stage.settings.notify = notifyKeyspace | notifyKeyevent | notifyAll | notifyMiss | notifyNew
	for _, line := range []string{
		"CONFIG SET notify-keyspace-events AKEmn",
		fmt.Sprintf("CONFIG SET hash-max-listpack-entries %d hash-max-listpack-value %d list-max-listpack-size %d", l.HashMaxListpackEntries, l.HashMaxListpackValue, l.ListMaxListpackSize),
		fmt.Sprintf("CONFIG SET set-max-intset-entries %d set-max-listpack-entries %d set-max-listpack-value %d", l.SetMaxIntsetEntries, l.SetMaxListpackEntries, l.SetMaxListpackValue),
		fmt.Sprintf("CONFIG SET zset-max-listpack-entries %d zset-max-listpack-value %d", l.ZSetMaxListpackEntries, l.ZSetMaxListpackValue),
	} {
		if reply := d.real.do("", words(line)...); reply != "+OK" {
			d.Fatalf("%s: %s", line, reply)
		}
	}
	d.real.do("", "HELLO", proto)
	d.stage.do("", "HELLO", proto)
	for _, who := range []target{d.real, d.stage} {
		who.do("sub", "PSUBSCRIBE", "__key*")
	}
	d.real.do("sub", "SUBSCRIBE", "barrier")
}

// step plays one command.
func (d *duel) step(args []string) {
	ordered := d.ordered(args)
	if !ordered && strings.HasSuffix(args[0], "SCAN") { // where a scan of a table stops is not defined
		args = append(args, "COUNT", "5000")
	}
	d.last = append(d.last, fmt.Sprintf("%.300q", args))
	real := d.real.do("", args...)
	got := d.stage.do("", args...)
	if got == "" { // it waits
		d.stage.sleep(2000)
		got = d.stage.take("")
	}
	realEvents := d.realEvents()
	events := d.stage.take("sub")
	switch {
	case args[0] == "TTL": // their clocks are not the same
		real, got = outline(real), outline(got)
	case chance(args):
		real, got = outline(real), outline(got)
	case !ordered:
		real, got = inOrder(real), inOrder(got)
	}
	if real != got {
		d.fail("reply", real, got)
	}
	if !ordered { // SORT looks up what it sorts by in the order of the table
		realEvents, events = inLines(realEvents), inLines(events)
	}
	if realEvents != events {
		d.fail("events", realEvents, events)
	}
	if strings.EqualFold(args[0], "SPOP") { // who has gone was chance
		d.real.do("", "DEL", args[1])
		d.stage.do("", "DEL", args[1])
		d.realEvents()
		d.stage.take("sub")
	}
	d.compareStates()
}

func (d *duel) fail(what, want, got string) {
	d.Helper()
	for _, key := range d.keys {
		for _, args := range [][]string{{"SMEMBERS", key}, {"ZRANGE", key, "0", "-1", "WITHSCORES"}} {
			if reply := d.stage.do("", args...); len(reply) > 2 && reply[0] != '-' {
				d.Logf("%s: got %.300s\nwant %.300s", args, reply, d.real.do("", args...))
			}
		}
	}
	d.Errorf("%s\n%s of the last\n got %.300s\nwant %.300s", strings.Join(d.last[max(0, len(d.last)-12):], "\n"), what, got, want)
}

// realEvents takes the keyspace events of the command before.
func (d *duel) realEvents() string {
	d.real.do("", "PUBLISH", "barrier", "")
	var events []string
	for {
		c := d.real.conn("sub")
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		v, err := c.Read()
		if err != nil {
			d.Fatal(err)
		}
		if v.List[1].Text == "barrier" {
			return strings.Join(events, " ")
		}
		events = append(events, notation(v))
	}
}

// chance reports whether the reply of a command is drawn by lot.
func chance(args []string) bool {
	return slices.Contains([]string{"SPOP", "SRANDMEMBER", "ZRANDMEMBER"}, args[0])
}

// outline is a reply without its strings, or a number's sign.
func outline(reply string) string {
	if strings.HasPrefix(reply, ":") && reply > ":0" {
		return ":1"
	}
	parts := strings.Split(reply, ", ")
	for i, p := range parts {
		if at := strings.IndexByte(p, '"'); at >= 0 {
			parts[i] = p[:at] + `"` + p[strings.LastIndexByte(p, '"')+1:]
		}
	}
	if strings.Contains(reply, "[[") { // scores are numbers
		return strings.Split(parts[0], `"`)[0] + fmt.Sprint(len(parts))
	}
	return strings.Join(parts, ", ")
}

// inOrder is a reply with the elements of its first list in order.
func inOrder(reply string) string {
	open, shut := strings.IndexByte(reply, '['), len(strings.TrimRight(reply, "]"))
	if at := strings.Index(reply, ", ["); at >= 0 { // a scan's
		open = at + 2
	}
	if open < 0 || shut < open {
		return reply
	}
	parts := strings.Split(reply[open+1:shut], ", ")
	slices.Sort(parts)
	return reply[:open] + strings.Join(parts, ", ") + reply[shut:]
}

// inLines is a list of events in order.
func inLines(events string) string {
	lines := strings.SplitAfter(events+" ", "] ")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// ordered reports whether the order of the reply's elements is defined.
func (d *duel) ordered(args []string) bool {
	tables := func(encodings ...string) bool {
		for _, key := range args[1:] {
			if o := d.stage.dbs[0].find([]byte(key)); o != nil && slices.Contains(encodings, o.encoding()) {
				return true
			}
		}
		return false
	}
	switch strings.ToUpper(args[0]) {
	case "SMEMBERS", "SSCAN", "SINTER":
		return !tables("hashtable") && (d.strict || !tables("listpack"))
	case "ZSCAN", "SORT", "SORT_RO":
		return !tables("hashtable", "skiplist") && (d.strict || !tables("listpack"))
	case "SUNION", "SDIFF":
		return !tables("hashtable", "listpack")
	}
	return true
}

const stateScript = `
	local all = {}
	for _, k in ipairs(KEYS) do
		local e = redis.call('OBJECT', 'ENCODING', k)
		if e then
			local ttl = ''
			if redis.call('PTTL', k) > 0 then ttl = ' volatile' end
			all[#all+1] = k .. ' ' .. e .. ttl
		end
	end
	return table.concat(all, '\n')`

func (d *duel) compareStates() {
	real := d.real.do("", append([]string{"EVAL", stateScript, fmt.Sprint(len(d.keys))}, d.keys...)...)
	var all []string
	db := d.stage.dbs[0]
	for _, key := range d.keys {
		if o := db.find([]byte(key)); o != nil {
			ttl := ""
			if db.deadline(o) != 0 {
				ttl = " volatile"
			}
			all = append(all, key+" "+o.encoding()+ttl)
		}
	}
	if got := fmt.Sprintf("%q", strings.Join(all, "\n")); got != real {
		d.fail("state", real, got)
	}
}

func (d *duel) compareContents() {
	for _, key := range d.keys {
		for _, args := range [][]string{{"SMEMBERS", key}, {"ZRANGE", key, "0", "-1", "WITHSCORES"}, {"LRANGE", key, "0", "-1"}} {
			real, got := d.real.do("", args...), d.stage.do("", args...)
			if args[0] == "SMEMBERS" {
				real, got = inOrder(real), inOrder(got)
			}
			if args[0] == "LRANGE" && strings.Contains(got, "unknown") {
				continue
			}
			if real != got {
				d.last = append(d.last, fmt.Sprint(args))
				d.fail("reply", real, got)
			}
		}
	}
	d.realEvents()
	d.stage.take("sub")
}

func TestSetsAgainstRedis(t *testing.T) {
	duelWith(t, []string{"k0", "k1", "k2", "k3", "k4", "k5"}, bothLimits, drawSets)
}

func TestSortedSetsAgainstRedis(t *testing.T) {
	duelWith(t, []string{"k0", "k1", "k2", "z0", "z1", "z2", "z3", "z4", "lex"}, bothLimits, drawSortedSets)
}

func TestSortAgainstRedis(t *testing.T) {
	duelWith(t, []string{"list", "set", "zset", "dst", "w_1", "w_2", "h_1", "h_2"}, bothLimits[1:], drawSort)
}
