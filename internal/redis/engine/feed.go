package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// The feed is what replicas receive: Redis's replication, as a master speaks it.
//
//	replica: PSYNC ? -1     --> +FULLRESYNC id offset, a Snapshot as an RDB file, and then the effects of every write since it was begun
//	replica: PSYNC id next  --> +CONTINUE id, and the effects from there on, if the backlog still has them
//	replica: REPLCONF ACK n     what it has done, once a second
//
// The effects are those of the journal: the same bytes for every replica. A replica that loads a snapshot gets them once it has acknowledged
// it; until then they are held for it and count against its limit.
type feed struct {
	id       string // names this stream; every start has a new one
	on       bool   // effects are being fed
	offset   int64  // bytes fed so far
	stream   Stream
	backlog  []byte // the most recent bytes
	replicas []*Session
	pinged   int64 // unix ms of the last PING
	left     int64 // unix ms when the last replica left
	waits    int   // sessions blocked by WAIT

	heldLimit int // how many bytes may be held for a replica that loads a snapshot
}

const (
	backlogSize   = 1 << 20
	pingEvery     = 10_000   // ms
	backlogLife   = 3600_000 // ms without a replica
	snapshotPiece = 60 << 10 // a piece ends with the key that passes this; most pieces fit into one reusable chunk of output
)

// replicaState says how far a session has come as a replica.
type replicaState uint8

const (
	noReplica replicaState = iota
	syncing                // the snapshot is being written
	loading                // sent; the replica has not acknowledged it yet
	online
)

// replica is what a session knows about the replica at the other end.
type replica struct {
	state    replicaState
	capaEOF  bool // accepts a snapshot of unknown length
	address  string
	port     string
	snapshot *Snapshot
	sum      rdb.Sum
	mark     string // ends the snapshot, if its length is not known
	piece    []byte // of the snapshot; reused, so that a snapshot makes no garbage
	whole    []byte // the whole snapshot, if its length must be known
	held     []byte
	acked    int64
	ackedAt  int64 // unix ms
}

// IsReplica reports whether the session is a replica's: it is fed, and has limits of its own.
func (s *Session) IsReplica() bool { return s.replica.state != noReplica }

// Syncing reports whether a snapshot is being written to s: the owner must call SyncPiece until it is false.
func (s *Session) Syncing() bool { return s.replica.state == syncing }

var feedCommands = []Command{
	{Name: "psync", Arity: -3, Flags: Admin | NoScript | NoMulti, run: psyncCommand},
	{Name: "sync", Arity: 1, Flags: Admin | NoScript | NoMulti, run: psyncCommand},
	{Name: "replconf", Arity: -1, Flags: Admin | NoScript | Loading | Stale | AllowBusy, run: replconfCommand},
	{Name: "role", Arity: 1, Flags: NoScript | Loading | Stale | Fast, Cats: CatAdmin | CatDangerous, run: roleCommand},
}

// psyncCommand makes the session a replica's. SYNC is the old form, without a status line before the snapshot.
func psyncCommand(c *call) {
	e, s := c.e, c.s
	switch {
	case e.options.Cluster != nil:
		c.fail("ERR a node of this cluster has no replicas")
		return
	case e.master != nil && e.master.State != LinkInOrder:
		c.fail("NOMASTERLINK Can't SYNC while not connected with my master")
		return
	case s.replica.state != noReplica:
		c.fail("ERR this connection is already a replica's")
		return
	}
	c.silent = true
	f := &e.feed
	if c.cmd.Name == "psync" && f.on && string(c.args[1]) == f.id {
		next, err := strconv.ParseInt(string(c.args[2]), 10, 64)
		if behind := f.offset - (next - 1); err == nil && behind >= 0 && behind <= int64(len(f.backlog)) {
			c.out.Simple("CONTINUE " + f.id)
			c.out.Raw(string(f.backlog[int64(len(f.backlog))-behind:]))
			s.replica.state, s.replica.acked, s.replica.ackedAt = online, next-1, e.ms
			f.replicas = append(f.replicas, s)
			e.stats.partialSyncs++
			return
		}
	}
	e.stats.fullSyncs++
	if c.cmd.Name == "psync" && string(c.args[1]) != "?" {
		e.stats.refusedSyncs++
	}
	if !f.on {
		f.on, f.pinged = true, e.ms
		f.id = hexID(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		if e.master != nil { // then its stream is the master's
			f.id, f.offset = e.master.ID, e.master.Offset
		}
		f.stream.Write = e.fed
	}
	f.stream.Reselect()
	if c.cmd.Name == "psync" {
		c.out.Simple(fmt.Sprintf("FULLRESYNC %s %d", f.id, f.offset))
	}
	s.replica.state, s.replica.snapshot = syncing, e.Snapshot()
	if e.master != nil {
		s.replica.snapshot.stream = e.master.DB
	}
	s.replica.acked, s.replica.ackedAt = f.offset, e.ms
	if s.replica.capaEOF {
		s.replica.mark = hexID(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		c.out.Raw("$EOF:" + s.replica.mark + "\r\n")
	}
	f.replicas = append(f.replicas, s)
}

// SyncPiece writes the next piece of the snapshot to s.
func (e *Engine) SyncPiece(s *Session) {
	r := &s.replica
	if r.state != syncing {
		return
	}
	b, more := r.snapshot.Next(r.piece[:0], snapshotPiece)
	r.sum.Add(b)
	if !more {
		b = rdb.AppendEnd(b, r.sum)
	}
	r.piece = b
	if r.mark != "" {
		s.Out.RawBytes(b)
	} else if r.whole = append(r.whole, b...); !more {
		s.Out.Raw("$" + strconv.Itoa(len(r.whole)) + "\r\n")
		s.Out.RawBytes(r.whole)
		r.whole = nil
	}
	if more {
		return
	}
	r.snapshot, r.piece, r.state = nil, nil, loading
	if r.mark != "" {
		s.Out.Raw(r.mark)
	} else {
		e.feedHeld(s) // the end of the snapshot is announced
	}
}

// feedHeld releases the effects held for s.
func (e *Engine) feedHeld(s *Session) {
	s.Out.RawBytes(s.replica.held)
	s.replica.held, s.replica.state = nil, online
	e.markDirty(s)
}

// fed sends effects to all replicas.
func (e *Engine) fed(b []byte) {
	f := &e.feed
	f.offset += int64(len(b))
	f.remember(b)
	for _, s := range f.replicas {
		if s.replica.state == online {
			s.Out.RawBytes(b)
			e.markDirty(s)
		} else if s.replica.held = append(s.replica.held, b...); len(s.replica.held) > f.heldLimit {
			e.kill(s)
		}
	}
}

// remember keeps the end of what was fed: at least backlogSize bytes of it, at most twice as many.
func (f *feed) remember(b []byte) {
	if len(b) >= backlogSize {
		f.backlog = append(f.backlog[:0], b[len(b)-backlogSize:]...)
		return
	}
	if len(f.backlog)+len(b) > 2*backlogSize {
		f.backlog = append(f.backlog[:0], f.backlog[len(f.backlog)+len(b)-backlogSize:]...)
	}
	f.backlog = append(f.backlog, b...)
}

// unfeed forgets the replica at the other end of s.
func (e *Engine) unfeed(s *Session) {
	if s.replica.state == noReplica {
		return
	}
	if s.replica.snapshot != nil {
		s.replica.snapshot.End()
	}
	s.replica = replica{}
	f := &e.feed
	f.replicas = slices.DeleteFunc(f.replicas, func(other *Session) bool { return other == s })
	if len(f.replicas) == 0 {
		f.left = e.now / 1000
	}
}

// tendFeed pings the replicas, and forgets the backlog when there has been no replica for a long time.
func (e *Engine) tendFeed() {
	f := &e.feed
	switch {
	case !f.on:
	case len(f.replicas) > 0 && e.master != nil: // the master's PINGs are passed on
	case len(f.replicas) > 0 && e.ms >= f.pinged+pingEvery:
		f.pinged = e.ms
		e.fed([]byte("*1\r\n$4\r\nPING\r\n"))
	case len(f.replicas) == 0 && e.ms >= f.left+backlogLife:
		f.on, f.backlog = false, nil
	}
}

// next returns when tendFeed has something to do, in unix ms.
func (f *feed) next() (at int64, ok bool) {
	if len(f.replicas) == 0 {
		return f.left + backlogLife, f.on
	}
	return f.pinged + pingEvery, true
}

func replconfCommand(c *call) {
	if len(c.args)%2 == 0 {
		c.fail(errSyntax)
		return
	}
	r := &c.s.replica
	for i := 1; i < len(c.args); i += 2 {
		value := string(c.args[i+1])
		switch {
		case c.is(i, "ACK"):
			n, err := strconv.ParseInt(value, 10, 64)
			if r.state == noReplica || err != nil {
				return
			}
			r.acked, r.ackedAt = max(r.acked, n), c.e.ms
			if r.state == loading {
				c.e.feedHeld(c.s)
			}
			c.e.serveWaits()
			return // without a reply
		case c.is(i, "GETACK"):
			return
		case c.is(i, "LISTENING-PORT"):
			r.port = value
		case c.is(i, "IP-ADDRESS"):
			r.address = value
		case c.is(i, "CAPA"):
			r.capaEOF = r.capaEOF || strings.EqualFold(value, "eof")
		case c.is(i, "VERSION"):
		default:
			c.failf("ERR Unrecognized REPLCONF option: %s", value)
			return
		}
	}
	c.ok()
}

// acknowledged counts the replicas that have processed everything up to offset.
func (f *feed) acknowledged(offset int64) (n int) {
	for _, s := range f.replicas {
		if s.replica.state == online && s.replica.acked >= offset {
			n++
		}
	}
	return n
}

// waitCommand is WAIT: it replies how many replicas have what this session wrote, once there are as many as requested or the timeout has
// passed.
func waitCommand(c *call) {
	wanted := c.int(1)
	until := c.waitMilliseconds(2)
	if c.failed {
		return
	}
	e, s := c.e, c.s
	if e.master != nil {
		c.fail(errWaitAtReplica)
		return
	}
	c.parkUntil(until, int64(e.feed.acknowledged(s.wrote)) >= wanted, func(w *resp.Writer) { w.Int(int64(e.feed.acknowledged(s.wrote))) })
	if s.waiting == nil {
		return
	}
	s.waiting.replicas = wanted
	e.feed.waits++
	if len(e.feed.replicas) > 0 {
		e.fed([]byte("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"))
	}
}

// serveWaits replies to the sessions in WAIT that now have enough replicas.
func (e *Engine) serveWaits() {
	if e.feed.waits == 0 {
		return
	}
	for _, w := range slices.Clone(e.waiters) {
		if w != nil && w.replicas > 0 && int64(e.feed.acknowledged(w.s.wrote)) >= w.replicas {
			e.release(w.s, "")
		}
	}
}

func roleCommand(c *call) {
	if m := c.e.master; m != nil {
		c.roleOfReplica(m)
		return
	}
	c.out.Array(3)
	c.out.BulkString("master")
	c.out.Int(c.e.feed.offset)
	var all []*Session
	for _, s := range c.e.feed.replicas {
		if s.replica.state == online {
			all = append(all, s)
		}
	}
	c.out.Array(len(all))
	for _, s := range all {
		c.out.Array(3)
		c.out.BulkString(s.replicaHost())
		c.out.BulkString(s.replica.port)
		c.out.BulkString(strconv.FormatInt(s.replica.acked, 10))
	}
}

// replicaHost is the host of a replica, as announced by it or as seen on its connection.
func (s *Session) replicaHost() string {
	if s.replica.address != "" {
		return s.replica.address
	}
	return strings.Trim(s.opened.Addr[:max(strings.LastIndexByte(s.opened.Addr, ':'), 0)], "[]")
}

// replicationID names the stream fed to replicas, even if it has not begun.
func (e *Engine) replicationID() string {
	if e.master != nil && e.master.ID != "" {
		return e.master.ID
	}
	if e.feed.id != "" {
		return e.feed.id
	}
	return hexID(rand.NewPCG(e.options.Seed, 3))
}

// streamOffset is the length of that stream so far.
func (e *Engine) streamOffset() int64 {
	if e.master != nil {
		return e.master.Offset
	}
	return e.feed.offset
}

func infoReplicas(e *Engine, w *strings.Builder) {
	line(w, "connected_slaves", len(e.feed.replicas))
	for i, s := range e.feed.replicas {
		state := [...]string{"", "send_bulk", "send_bulk", "online"}[s.replica.state]
		line(w, fmt.Sprintf("slave%d", i), fmt.Sprintf("ip=%s,port=%s,state=%s,offset=%d,lag=%d",
			s.replicaHost(), s.replica.port, state, s.replica.acked, max(e.now/1000-s.replica.ackedAt, 0)/1000))
	}
}
