package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// beside is an engine and a real Redis that get the same commands. The clock runs, but nothing is reaped, so that commands find dead keys and
// fields on both sides.
type beside struct {
	engine   *Engine
	now      int64            // the engine's: real time, or later if a command had to wait
	sessions map[int]*Session // by protocol, and the two below
	conns    map[int]*wire.Conn
	strict   bool // no set becomes a table, so the order of small ones, which may come from a table, is defined

	batch  []*exchange  // sent to the engine, but not to Redis yet
	who    int          // whose batch it is
	timely map[int]bool // by session: its open transaction asks for times

	dump, realDump string // the last replies to DUMP
	seen           func(*exchange)

	out    []byte       // of one session
	buffer bufio.Reader // of out
}

// Sessions not named after their protocol.
const (
	subscriber = 0
	checker    = 1
)

// exchange is a command and its outcome.
type exchange struct {
	args       []string
	proto      int
	how        tolerance
	got, want  resp.Value
	events     []string // the engine's
	wantEvents []string
	marked     bool // events are complete; earlier exchanges without a mark have theirs here too
	aside      bool // not drawn, but added
}

// mismatch is an exchange in which the two differ.
type mismatch struct {
	*exchange
	acts int // how many acts had been played
	what string
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("RESP%d %.200q: %s\n   got %.300s %.300v\n  want %.300s %.300v", m.proto, m.args, m.what, notation(m.got), m.events, notation(m.want), m.wantEvents)
}

// lowLimits make both forms of each structure appear with small values.
var lowLimits = values.Limits{
	HashMaxListpackEntries: 4, HashMaxListpackValue: 64, ListMaxListpackSize: 4,
	SetMaxIntsetEntries: 6, SetMaxListpackEntries: 8, SetMaxListpackValue: 12,
	ZSetMaxListpackEntries: 8, ZSetMaxListpackValue: 12,
}

// newBeside returns a new engine and the server at addr, both empty.
func newBeside(addr string, low bool) (*beside, error) {
	b := &beside{
		engine: New(Options{Seed: 1}), sessions: map[int]*Session{}, conns: map[int]*wire.Conn{}, timely: map[int]bool{},
		strict: !low, who: checker,
	}
	for _, who := range []int{2, 3, subscriber, checker} {
		conn, err := wire.Dial(context.Background(), addr, time.Minute)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.conns[who] = conn
		b.sessions[who] = b.engine.NewSession(SessionOptions{Now: time.Now().UnixMicro()})
	}
	sub := b.conns[subscriber]
	sub.Add("PSUBSCRIBE", "__keyevent@*", "end")
	err := sub.Flush()
	for range 2 {
		if err == nil {
			_, err = sub.Reply()
		}
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.do(b.sessions[subscriber], []string{"PSUBSCRIBE", "__keyevent@*", "end"})
	b.sessions[subscriber].Out.Take(nil)
	l := values.DefaultLimits
	if low {
		l = lowLimits
	}
	for _, line := range []string{
		"FLUSHALL", "SCRIPT FLUSH", "DEBUG SET-ACTIVE-EXPIRE 0", "CONFIG RESETSTAT", "CONFIG SET notify-keyspace-events EAmn maxmemory 0 maxmemory-policy noeviction",
		"CONFIG SET maxmemory-samples 5 active-expire-effort 1 hz 10 lfu-log-factor 10 lfu-decay-time 1 tracking-table-max-keys 1000000 busy-reply-threshold 5000",
		fmt.Sprintf("CONFIG SET hash-max-listpack-entries %d hash-max-listpack-value %d list-max-listpack-size %d", l.HashMaxListpackEntries, l.HashMaxListpackValue, l.ListMaxListpackSize),
		fmt.Sprintf("CONFIG SET set-max-intset-entries %d set-max-listpack-entries %d set-max-listpack-value %d", l.SetMaxIntsetEntries, l.SetMaxListpackEntries, l.SetMaxListpackValue),
		fmt.Sprintf("CONFIG SET zset-max-listpack-entries %d zset-max-listpack-value %d", l.ZSetMaxListpackEntries, l.ZSetMaxListpackValue),
	} {
		b.send(words(line)...)
	}
	if m := b.flush(); m != nil {
		return nil, errors.Join(m, b.close())
	}
	b.turn(3)
	b.aside([]string{"HELLO", "3"}, anything)
	if m := b.flush(); m != nil {
		return nil, errors.Join(m, b.close())
	}
	return b, nil
}

func (b *beside) close() error {
	for _, c := range b.conns {
		c.Close()
	}
	return nil
}

// clock is real time, but never earlier than the engine's time so far.
func (b *beside) clock() int64 {
	b.now = max(b.now, time.Now().UnixMicro())
	return b.now
}

// do runs a command on the engine to its end.
func (b *beside) do(s *Session, args []string) resp.Value {
	raw := make([][]byte, len(args))
	for i, a := range args {
		raw[i] = []byte(a)
	}
	outcome := b.engine.Do(b.clock(), s, raw)
	for outcome == Yielded {
		outcome = b.engine.Resume(b.clock(), s)
	}
	for _, a := range raw { // overwritten, because the engine may keep nothing of the arguments
		for i := range a {
			a[i] = '!'
		}
	}
	if at, ok := b.engine.NextWake(); s.Waiting() && ok {
		b.now = at
		b.engine.Tick(at)
	}
	v, err := b.taken(s).Read()
	if err != nil {
		v = resp.Value{Kind: '-', Text: "no reply: " + err.Error()}
	}
	return v
}

// taken empties the Out of a session and returns its contents, which must be read before the next call.
func (b *beside) taken(s *Session) *resp.Reader {
	b.out = append(b.out[:0], s.Out.Bytes()...)
	s.Out.Take(nil)
	b.buffer.Reset(bytes.NewReader(b.out))
	return resp.NewReader(&b.buffer)
}

// turn ends the batch if it is another session's.
func (b *beside) turn(who int) *mismatch {
	if who == b.who {
		return nil
	}
	m := b.flush()
	b.who = who
	return m
}

// send runs a command on the engine, and adds it to the batch for Redis with the commands that must follow it. A command whose reply cannot
// be compared here is left out.
func (b *beside) send(args ...string) {
	args = b.filled(args)
	s := b.sessions[b.who]
	inside := s.queue != nil
	j := b.judge(args, inside)
	if inside && j.how != same && j.how != near {
		return
	}
	if isName(innermost(args), "SCAN", "SSCAN", "HSCAN", "ZSCAN") && j.how == unordered { // where the scan stops is not defined
		args = append(slices.Clone(args), "COUNT", "5000")
	}
	for _, line := range j.before {
		b.aside(line, same)
	}
	x := b.ask(args, j.how)
	switch {
	case s.queue != nil:
		b.timely[b.who] = b.timely[b.who] || j.how == near
	case inside && b.timely[b.who]:
		x.how, b.timely[b.who] = near, false
	}
	b.batch = append(b.batch, x)
	if x.got.Kind == '-' {
		return
	}
	if isName(args, "RESET") && b.who == 3 {
		j.after = [][]string{{"HELLO", "3"}}
	}
	for _, line := range j.after {
		b.aside(line, anything)
	}
}

// aside adds a command to the batch that was not drawn.
func (b *beside) aside(line []string, how tolerance) {
	x := b.ask(line, how)
	x.aside = true
	b.batch = append(b.batch, x)
}

// ask runs a command on the engine.
func (b *beside) ask(args []string, how tolerance) *exchange {
	s, sub := b.sessions[b.who], b.sessions[subscriber]
	x := &exchange{args: args, proto: b.who, how: how, got: b.do(s, args)}
	w := b.conns[b.who]
	w.Add(args...)
	if x.marked = s.queue == nil; x.marked {
		w.Add("PUBLISH", "end", "")
	}
	if len(sub.Out.Bytes()) > 0 {
		r := b.taken(sub)
		for v, err := r.Read(); err == nil; v, err = r.Read() {
			x.events = append(x.events, eventName(v))
		}
	}
	return x
}

// filled inserts a payload where the draw asks for one.
func (b *beside) filled(args []string) []string {
	for i, a := range args {
		switch a {
		case "$DUMP":
			args = slices.Clone(args)
			args[i] = b.dump
		case "$REALDUMP":
			args = slices.Clone(args)
			args[i] = b.realDump
		}
	}
	return args
}

// flush sends the batch to Redis and compares.
func (b *beside) flush() *mismatch {
	defer func() { b.batch = b.batch[:0] }()
	if len(b.batch) == 0 {
		return nil
	}
	w, sub := b.conns[b.who], b.conns[subscriber]
	if err := w.Flush(); err != nil {
		return &mismatch{exchange: b.batch[0], what: err.Error()}
	}
	for _, x := range b.batch {
		var err error
		if x.want, err = w.Reply(); err == nil && x.marked {
			_, err = w.Reply()
		}
		if err != nil {
			return &mismatch{exchange: x, what: "no reply: " + err.Error()}
		}
		if isName(x.args, "DUMP") && x.want.Text != "" && x.want.Kind == '$' {
			b.dump, b.realDump = x.got.Text, x.want.Text
		}
	}
	sub.SetDeadline(time.Now().Add(time.Minute))
	for _, x := range b.batch {
		for x.marked {
			v, err := sub.Reply()
			if err != nil {
				return &mismatch{exchange: x, what: "no event: " + err.Error()}
			}
			name := eventName(v)
			if name == "" {
				break
			}
			x.wantEvents = append(x.wantEvents, name)
		}
		if m := x.compare(); m != nil {
			return m
		}
		if b.seen != nil && !x.aside && b.who != checker {
			b.seen(x)
		}
	}
	return nil
}

// eventName is the database, the event and the key, or empty for the mark that ends the events.
func eventName(v resp.Value) string {
	if len(v.List) < 4 {
		return notation(v)
	}
	_, event, ok := strings.Cut(v.List[2].Text, "@")
	if !ok {
		return ""
	}
	return strings.Replace(event, "__:", " ", 1) + " " + v.List[3].Text
}

// check compares the contents of keys in the databases that commands use.
func (b *beside) check(keys []string) *mismatch {
	if m := b.turn(checker); m != nil {
		return m
	}
	for i := range 3 {
		b.send("SELECT", strconv.Itoa(i))
		none := []string{"EXISTS"}
		for _, key := range keys {
			o := b.engine.dbs[i].find([]byte(key))
			if o == nil {
				none = append(none, key)
				continue
			}
			for _, line := range questions(key, o) {
				b.send(line...)
			}
		}
		b.send(none...)
		b.send("DBSIZE")
	}
	return b.flush()
}

// questions are commands that together show everything about a key.
func questions(key string, o *object) [][]string {
	lines := [][]string{{"OBJECT", "ENCODING", key}, {"PEXPIRETIME", key}, {"EXPIRETIME", key}}
	switch v := o.coll.(type) {
	case nil:
		lines = append(lines, []string{"GET", key})
	case *values.ListValue:
		lines = append(lines, []string{"LRANGE", key, "0", "-1"})
	case *values.SetValue:
		lines = append(lines, []string{"SMEMBERS", key})
	case *values.ZSetValue:
		lines = append(lines, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"})
	case *values.HashValue:
		fields := []string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(v.Len())}
		v.Each(func(field, _ []byte, _ int64) bool {
			fields = append(fields, string(field))
			return true
		})
		lines = append(lines, []string{"HGETALL", key}, fields)
	}
	return lines
}
