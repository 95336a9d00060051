package engine

import (
	"maps"
	"slices"

	"github.com/mayflycache/mayfly/internal/glob"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// pubsubCommands are publishing and subscribing, by channel, pattern and shard.
var pubsubCommands = []Command{
	{Name: "subscribe", Arity: -2, Flags: PubSub | NoScript | Loading | Stale, run: func(c *call) { c.subscribe(channels) }},
	{Name: "psubscribe", Arity: -2, Flags: PubSub | NoScript | Loading | Stale, run: func(c *call) { c.subscribe(patterns) }},
	{Name: "ssubscribe", Arity: -2, Flags: PubSub | NoScript | Loading | Stale, Keys: allKeys, run: func(c *call) { c.subscribe(shards) }},
	{Name: "unsubscribe", Arity: -1, Flags: PubSub | NoScript | Loading | Stale, run: func(c *call) { c.unsubscribe(channels) }},
	{Name: "punsubscribe", Arity: -1, Flags: PubSub | NoScript | Loading | Stale, run: func(c *call) { c.unsubscribe(patterns) }},
	{Name: "sunsubscribe", Arity: -1, Flags: PubSub | NoScript | Loading | Stale, Keys: allKeys, run: func(c *call) { c.unsubscribe(shards) }},
	{Name: "publish", Arity: 3, Flags: PubSub | Loading | Stale | Fast | MayReplicate, run: publishCommand},
	{Name: "spublish", Arity: 3, Flags: PubSub | Loading | Stale | Fast | MayReplicate, Keys: oneKey, run: spublishCommand},
	{Name: "pubsub", Arity: -2, Sub: []Command{
		{Name: "pubsub|channels", Arity: -2, Flags: PubSub | Loading | Stale, run: func(c *call) { c.listChannels(channels) }},
		{Name: "pubsub|shardchannels", Arity: -2, Flags: PubSub | Loading | Stale, run: func(c *call) { c.listChannels(shards) }},
		{Name: "pubsub|numsub", Arity: -2, Flags: PubSub | Loading | Stale, run: func(c *call) { c.countSubscribers(channels) }},
		{Name: "pubsub|shardnumsub", Arity: -2, Flags: PubSub | Loading | Stale, run: func(c *call) { c.countSubscribers(shards) }},
		{Name: "pubsub|numpat", Arity: 2, Flags: PubSub | Loading | Stale, run: func(c *call) { c.number(len(c.e.pubsub[patterns])) }},
		{Name: "pubsub|help", Arity: 2, Flags: Loading | Stale, run: func(c *call) { c.help(pubsubHelp) }},
	}},
}

const pubsubHelp = `
CHANNELS [<pattern>]
    Return the currently active channels matching a <pattern> (default: '*').
NUMPAT
    Return number of subscriptions to patterns.
NUMSUB [<channel> ...]
    Return the number of subscribers for the specified channels, excluding
    pattern subscriptions(default: no channels).
SHARDCHANNELS [<pattern>]
    Return the currently active shard level channels matching a <pattern> (default: '*').
SHARDNUMSUB [<shardchannel> ...]
    Return the number of subscribers for the specified shard level channel(s)
`

// space is a kind of subscription. A channel and a shard channel of the same name are different.
type space uint8

const (
	channels space = iota
	patterns
	shards
)

// The words of the replies and messages of each space.
var (
	subscribed   = [...]string{"subscribe", "psubscribe", "ssubscribe"}
	unsubscribed = [...]string{"unsubscribe", "punsubscribe", "sunsubscribe"}
)

// hub knows who subscribed to what: for each space the sessions by name, in order of subscription. A name without sessions is not in the map.
type hub [3]map[string][]*Session

// subscriptions are what one session is subscribed to.
type subscriptions struct {
	to [3]map[string]struct{}
}

// Subscribed reports whether the session listens to a channel. In RESP2 it may then run little else; it may be idle, and its backlog of
// output is limited.
func (s *subscriptions) Subscribed() bool {
	return len(s.to[channels])+len(s.to[patterns])+len(s.to[shards]) > 0
}

// count is the number in replies to (un)subscribing: channels and patterns together, shard channels by themselves.
func (s *subscriptions) count(in space) int {
	if in == shards {
		return len(s.to[shards])
	}
	return len(s.to[channels]) + len(s.to[patterns])
}

// allowedWhileSubscribed reports whether RESP2 allows cmd to a subscribed session.
func allowedWhileSubscribed(cmd *Command) bool {
	switch cmd.Name {
	case "ping", "subscribe", "ssubscribe", "psubscribe", "unsubscribe", "sunsubscribe", "punsubscribe", "quit", "reset":
		return true
	}
	return false
}

func (c *call) subscribe(in space) {
	for _, name := range c.args[1:] {
		c.e.subscribe(c.s, in, string(name))
		c.confirm(subscribed[in], in, name)
	}
}

// unsubscribe without names ends all subscriptions, and replies once even if there are none.
func (c *call) unsubscribe(in space) {
	names := c.args[1:]
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(c.s.to[in])) {
			names = append(names, []byte(name))
		}
		if len(names) == 0 {
			c.confirm(unsubscribed[in], in, nil)
			return
		}
	}
	for _, name := range names {
		c.e.unsubscribe(c.s, in, string(name))
		c.confirm(unsubscribed[in], in, name)
	}
}

// confirm tells the session what it is subscribed to now. CLIENT REPLY OFF does not silence it, just as it silences no push.
func (c *call) confirm(word string, in space, name []byte) {
	w := c.out
	if c.s.reply == replyOff {
		w = c.e.pushTo(c.s)
	}
	c.s.confirm(w, word, in, name)
}

// confirm writes the confirmation of one subscription; name is nil if there was none.
func (s *subscriptions) confirm(w *resp.Writer, word string, in space, name []byte) {
	w.Push(3)
	w.BulkString(word)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(s.count(in)))
}

func (e *Engine) subscribe(s *Session, in space, name string) {
	if _, ok := s.to[in][name]; ok {
		return
	}
	if s.to[in] == nil {
		s.to[in] = make(map[string]struct{})
	}
	s.to[in][name] = struct{}{}
	join(&e.pubsub[in], name, s)
	if in == patterns && e.globs[name] == nil {
		if e.globs == nil {
			e.globs = make(map[string]*glob.Pattern)
		}
		e.globs[name] = glob.Compile([]byte(name))
	}
}

func (e *Engine) unsubscribe(s *Session, in space, name string) {
	if _, ok := s.to[in][name]; !ok {
		return
	}
	delete(s.to[in], name)
	leave(e.pubsub[in], name, s)
	if in == patterns && e.pubsub[in][name] == nil {
		delete(e.globs, name)
	}
}

// unsubscribeAll removes the subscriptions of s without telling it.
func (e *Engine) unsubscribeAll(s *Session) {
	for in := range s.to {
		for name := range s.to[in] {
			e.unsubscribe(s, space(in), name)
		}
	}
}

func publishCommand(c *call) {
	c.number(c.e.publish(c.args[1], c.args[2]))
	c.e.broadcast(c.args[1], c.args[2])
	if c.e.feed.on { // subscribers at replicas hear it too; the journal does not record it
		c.e.unit = true
		c.e.feed.stream.Effect(c.s.db, c.args)
	}
}

func spublishCommand(c *call) {
	c.number(c.e.say(c.e.pubsub[shards][string(c.args[1])], "smessage", c.args[1], c.args[2]))
}

// publish sends message to the subscribers of channel and then to those of matching patterns, and returns how many messages it sent. Both
// arguments are copied.
func (e *Engine) publish(channel, message []byte) int {
	sent := e.say(e.pubsub[channels][string(channel)], "message", channel, message)
	for pattern, to := range e.pubsub[patterns] {
		if !e.globs[pattern].Match(channel) {
			continue
		}
		for _, s := range to {
			w := e.push(s, 4, "pmessage")
			w.BulkString(pattern)
			w.Bulk(channel)
			w.Bulk(message)
		}
		sent += len(to)
	}
	return sent
}

// say sends a message to the given sessions, and returns how many they are.
func (e *Engine) say(to []*Session, word string, channel, message []byte) int {
	for _, s := range to {
		w := e.push(s, 3, word)
		w.Bulk(channel)
		w.Bulk(message)
	}
	return len(to)
}

func (c *call) listChannels(in space) {
	if len(c.args) > 3 {
		c.fail(wrongSubcommand(c.args))
		return
	}
	names := slices.Sorted(maps.Keys(c.e.pubsub[in]))
	if len(c.args) == 3 {
		pattern := glob.Compile(c.args[2])
		names = slices.DeleteFunc(names, func(name string) bool { return !globKey(pattern, name) })
	}
	c.texts(names)
}

func (c *call) countSubscribers(in space) {
	c.out.Array(2 * (len(c.args) - 2))
	for _, name := range c.args[2:] {
		c.out.Bulk(name)
		c.number(len(c.e.pubsub[in][string(name)]))
	}
}
