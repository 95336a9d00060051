package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// Master describes the master that a replica follows, and how far the replica has come. The owner makes one for each master and updates it
// between commands; the engine only reads it.
type Master struct {
	Host string
	Port int

	State  string // as ROLE has it: connect, connecting, sync or connected
	ID     string // names the master's stream; empty: none of it is here
	Offset int64  // in that stream: everything before it has been carried out
	DB     int    // the database selected at that point of the stream
	Heard  int64  // unix ms when the master was last heard from
	Lost   int64  // unix ms when the link was lost
}

// The states of a Master.
const (
	LinkWaits   = "connect"
	LinkGreets  = "connecting"
	LinkSyncs   = "sync"
	LinkInOrder = "connected"
)

// SetUpstream sets the function that is called, while the command runs, when the engine is to follow another master, or none (nil). Without
// it the engine cannot follow a master.
func (e *Engine) SetUpstream(follow func(m *Master)) { e.upstream = follow }

// Master returns the master that the engine follows; nil: none.
func (e *Engine) Master() *Master { return e.master }

// Follow makes the engine a replica of m, or a master again if m is nil. A replica hides dead keys, removes nothing on its own, and refuses
// writes except those of its master, which come through Obey. Its own replicas have to synchronise anew.
func (e *Engine) Follow(m *Master) {
	was := e.master
	e.master = m
	f := &e.feed
	for _, s := range f.replicas {
		e.kill(s)
	}
	f.on, f.backlog, f.id = false, nil, ""
	switch {
	case m == nil && was != nil:
		f.offset = was.Offset
	case m != nil:
		f.offset = m.Offset
		for _, s := range e.sessions {
			if s.Waiting() && !s.Held() {
				e.release(s, "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
			}
		}
	}
	if e.upstream != nil {
		e.upstream(m)
	}
}

// hides reports whether dead keys are hidden instead of removed, until the master removes them or a pause ends.
func (e *Engine) hides() bool { return e.master != nil || e.paused() }

// Idle reports whether Obey may be called: no script is in progress.
func (e *Engine) Idle() bool { return e.scripts.running == nil }

// Advance says that words from the master, one or more whole effects, have been carried out. Replicas of this replica get the same bytes.
func (e *Engine) Advance(words []byte) {
	e.master.Offset += int64(len(words))
	if e.feed.on {
		e.fed(words)
	}
}

// DB returns the session's selected database.
func (s *Session) DB() int { return s.db }

// Credentials are for logging in at a master: masteruser and masterauth.
func (e *Engine) Credentials() (user, password string) {
	return e.settings.masterUser, e.settings.masterPassword
}

// SetCredentials sets masteruser and masterauth.
func (e *Engine) SetCredentials(user, password string) {
	e.settings.masterUser, e.settings.masterPassword = user, password
}

// Port returns the TCP port for connections; 0: none.
func (e *Engine) Port() int { return e.port }

// Sibling returns an empty engine with the settings of e, to be loaded and then passed to Adopt.
func (e *Engine) Sibling() *Engine {
	other := New(e.options)
	other.settings, other.limits = e.settings, e.limits
	return other
}

// Adopt replaces the engine's data with those of other, a Sibling that must not be used any more. This is not sent as an effect; sessions
// that watch keys or keep copies of them are told that the keys have changed.
func (e *Engine) Adopt(now int64, other *Engine) {
	e.setNow(now)
	for i, d := range e.dbs {
		next := &other.dbs[i].keyspace
		e.spoilAll(d, next)
		d.leave()
		d.keyspace = *next
		d.settle()
	}
	e.invalidateAll()
	if e.settings.maxMemory != other.settings.maxMemory { // changed while the sibling was loading
		e.weighAll()
	}
	for _, s := range e.feed.replicas { // the stream they follow has ended
		e.kill(s)
	}
	e.feed.on, e.feed.backlog = false, nil
}

var upstreamCommands = []Command{
	{Name: "replicaof", Arity: 3, Flags: Admin | NoScript | Stale, run: replicaofCommand},
	{Name: "slaveof", Arity: 3, Flags: Admin | NoScript | Stale, run: replicaofCommand},
}

func replicaofCommand(c *call) {
	e := c.e
	switch {
	case e.options.Cluster != nil:
		c.fail("ERR REPLICAOF not allowed in cluster mode.")
		return
	case c.s.IsReplica():
		c.fail("ERR Command is not valid when client is a replica.")
		return
	case c.is(1, "NO") && c.is(2, "ONE"):
		if e.master != nil {
			e.Follow(nil)
		}
		c.ok()
		return
	case e.upstream == nil:
		c.fail("ERR this server cannot follow another: embedded.Options.ReplicaOf and mayfly serve --replicaof can")
		return
	}
	port := c.int(2)
	if !c.failed && (port < 0 || port > 65535) {
		c.fail("ERR Invalid master port")
	}
	host := string(c.args[1])
	if m := e.master; m != nil && !c.failed && strings.EqualFold(m.Host, host) && m.Port == int(port) {
		c.out.Simple("OK Already connected to specified master")
		return
	}
	if !c.failed {
		e.Follow(&Master{Host: host, Port: int(port), State: LinkWaits, Lost: e.ms})
		c.ok()
	}
}

// roleOfReplica is ROLE at a replica.
func (c *call) roleOfReplica(m *Master) {
	c.out.Array(5)
	c.out.BulkString("slave")
	c.out.BulkString(m.Host)
	c.out.Int(int64(m.Port))
	c.out.BulkString(m.State)
	if m.ID == "" {
		c.out.Int(-1)
	} else {
		c.out.Int(m.Offset)
	}
}

// infoMaster writes what INFO says about the master.
func infoMaster(e *Engine, w *strings.Builder) {
	m := e.master
	if m == nil {
		line(w, "role", "master")
		return
	}
	line(w, "role", "slave")
	line(w, "master_host", m.Host)
	line(w, "master_port", m.Port)
	status, heard, offset := "down", "-1", "0"
	if m.State == LinkInOrder {
		status, heard = "up", strconv.FormatInt(max(e.now/1000-m.Heard, 0)/1000, 10)
	}
	if m.ID != "" {
		offset = strconv.FormatInt(m.Offset, 10)
	}
	line(w, "master_link_status", status)
	line(w, "master_last_io_seconds_ago", heard)
	line(w, "master_sync_in_progress", oneIf(m.State == LinkSyncs))
	line(w, "slave_read_repl_offset", offset)
	line(w, "slave_repl_offset", offset)
	if status == "down" {
		line(w, "master_link_down_since_seconds", fmt.Sprint(max(e.now/1000-m.Lost, 0)/1000))
	}
	line(w, "slave_priority", 100)
	line(w, "slave_read_only", 1)
	line(w, "replica_announced", 1)
}
