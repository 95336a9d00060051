package replica_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/replica"
	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// node is a server with a link, and a connection to it.
type node struct {
	t    *testing.T
	s    *server.Server
	link *replica.Link
	conn net.Conn
	in   *resp.Reader
}

// start starts a node that reaches its masters through dial.
func start(t *testing.T, dial func(ctx context.Context, addr string) (net.Conn, error)) *node {
	t.Helper()
	s, err := server.New(engine.New(engine.Options{}), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, s: s}
	if n.link, err = replica.New(replica.Options{Do: s.Do, Dial: dial}); err != nil {
		t.Fatal(err)
	}
	if n.conn, err = s.Dial(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	n.in = resp.NewReader(n.conn)
	t.Cleanup(func() {
		n.link.Close()
		n.conn.Close()
		s.Close(context.Background())
	})
	return n
}

// to dials a node.
func to(n *node) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) { return n.s.Dial(ctx, "", addr) }
}

// do sends a command and returns the reply.
func (n *node) do(words ...string) string {
	n.t.Helper()
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	n.conn.Write(engine.AppendCommand(nil, args))
	v, err := n.in.Read()
	if err != nil {
		n.t.Fatal(err)
	}
	switch v.Kind {
	case ':':
		return fmt.Sprint(v.Int)
	case '*':
		var all []string
		for _, e := range v.List {
			all = append(all, e.Text+fmt.Sprint(e.Int))
		}
		return strings.Join(all, " ")
	}
	return v.Text
}

// A replica can have replicas: they get the master's own bytes, and its offsets. When one in the middle is promoted, those below it
// synchronise anew.
func TestAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := start(t, nil)
		middle := start(t, to(top))
		low := start(t, to(middle))
		top.do("SET", "k", "v")
		top.do("SELECT", "3")
		top.do("SET", "k3", "v", "PX", "100000")
		low.do("REPLICAOF", "middle", "1")
		synctest.Wait()
		if s := low.link.Status(); s.InStep { // the middle is still a master of its own
			low.do("REPLICAOF", "NO", "ONE")
		}
		middle.do("REPLICAOF", "top", "1")
		if err := middle.link.InStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		low.do("REPLICAOF", "middle", "1")
		if err := low.link.InStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		top.do("MULTI")
		top.do("SET", "a", "1")
		top.do("SET", "b", "2")
		top.do("EXEC")
		synctest.Wait()
		low.do("SELECT", "3")
		if got := low.do("MGET", "k3", "a", "b"); got != "v0 10 20" {
			t.Errorf("at the end of the chain: %s", got)
		}
		t1, m1, l1 := offset(top), offset(middle), offset(low)
		if t1 != m1 || m1 != l1 || t1 == "0" {
			t.Errorf("offsets %s, %s, %s", t1, m1, l1)
		}
		if got := top.do("WAIT", "1", "1000"); got != "1" {
			t.Errorf("WAIT: %s", got)
		}
		if got := low.do("WAIT", "1", "1000"); !strings.HasPrefix(got, "ERR WAIT cannot be used with replica instances") {
			t.Errorf("WAIT at a replica: %s", got)
		}

		if err := middle.link.Promote(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		top.do("SET", "of", "top")
		middle.do("SELECT", "3")
		middle.do("SET", "of", "middle")
		synctest.Wait()
		if got := low.do("GET", "of"); got != "middle" {
			t.Errorf("after the promotion the last has %q", got)
		}
		if got := middle.do("GET", "of"); got != "middle" {
			t.Errorf("after the promotion the middle has %q", got)
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if got := middle.do("DBSIZE") + low.do("DBSIZE"); got != "33" { // a, b, of: it expires keys by itself, and replicates that
			t.Errorf("after 100 s: %s keys", got)
		}
	})
}

func offset(n *node) string {
	_, rest, _ := strings.Cut(n.do("INFO", "replication"), "master_repl_offset:")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// fake is a master played by a test.
type fake struct {
	conns chan net.Conn
	dials int
}

func (f *fake) dial(context.Context, string) (net.Conn, error) {
	f.dials++
	client, srv := net.Pipe()
	f.conns <- srv
	return client, nil
}

// greet answers up to PSYNC, and returns its arguments.
func greet(c net.Conn, in *bufio.Reader) []string {
	for {
		args, err := command(in)
		if err != nil {
			return nil // the replica has left
		}
		switch args[0] {
		case "PING":
			io.WriteString(c, "+PONG\r\n")
		case "PSYNC":
			return args
		default:
			io.WriteString(c, "+OK\r\n")
		}
	}
}

// command reads a command from a replica, skipping empty lines.
func command(in *bufio.Reader) (args []string, err error) {
	var n, size int
	line := "\n"
	for line == "\n" {
		if line, err = in.ReadString('\n'); err != nil {
			return nil, err
		}
	}
	fmt.Sscanf(line, "*%d", &n)
	for range n {
		if line, err = in.ReadString('\n'); err != nil {
			return nil, err
		}
		fmt.Sscanf(line, "$%d", &size)
		b := make([]byte, size+2)
		if _, err = io.ReadFull(in, b); err != nil {
			return nil, err
		}
		args = append(args, string(b[:size]))
	}
	return args, nil
}

// snapshot is an RDB file of one key, whose value has this type.
func snapshot(kind byte) string {
	b := rdb.AppendHeader(nil, 10, "redis-ver", "8.0.2")
	b = rdb.AppendSelect(b, 0)
	b = append(b, kind)
	b = rdb.AppendString(rdb.AppendString(b, []byte("of the master")), []byte("v"))
	var sum rdb.Sum
	sum.Add(b)
	return string(rdb.AppendEnd(b, sum))
}

const id = "0123456789012345678901234567890123456789"

// Whatever goes wrong in a synchronisation, the old data stay, and Status says what it was. What another attempt may mend is tried again
// every second; otherwise the attempts get rarer.
func TestASynchronisationThatFails(t *testing.T) {
	good := snapshot(rdb.TypeString)
	const fullresync = "+FULLRESYNC " + id + " 100\r\n"
	for _, test := range []struct {
		name, sends, says string
		seldom            bool
	}{
		{"a stream", fullresync + "$EOF:" + id + "\r\n" + snapshot(21) + id, `key "of the master" holds a value of RDB type 21, which is not supported`, true},
		{"functions", fullresync + fmt.Sprintf("$%d\r\n", 10) + "REDIS0011\xf5", "the file holds functions", true},
		{"a later version", fullresync + fmt.Sprintf("$%d\r\n", 9) + "REDIS0099", "version 99", true},
		{"a wrong mark", fullresync + "$EOF:" + id + "\r\n" + good + strings.Repeat("x", 40), "instead of its end mark", false},
		{"a length that is too great", fullresync + fmt.Sprintf("$%d\r\n%sxx", len(good)+2, good), "were announced", false},
		{"a damaged file", fullresync + fmt.Sprintf("$%d\r\n%sx", len(good), good[:len(good)-1]), "checksum", true},
		{"no file", fullresync + "-ERR no disk\r\n", "the master gave up the snapshot: ERR no disk", false},
		{"something else", fullresync + "+OK\r\n", `the master sent "+OK" instead of a snapshot`, false},
		{"cut", fullresync + fmt.Sprintf("$%d\r\n%s", len(good), good[:20]), "closed the connection", false},
		{"no master", "-NOMASTERLINK Can't SYNC while not connected with my master\r\n", "the master has no data yet", false},
		{"an error", "-ERR unknown command 'PSYNC'\r\n", "unknown command", true},
		{"too long a line", "+" + strings.Repeat("x", 100_000), "a line of more than", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{conns: make(chan net.Conn, 100)}
				n := start(t, f.dial)
				go func() {
					for c := range f.conns {
						in := bufio.NewReader(c)
						greet(c, in)
						go io.Copy(io.Discard, in)
						io.WriteString(c, test.sends)
						c.Close()
					}
				}()
				n.do("SET", "own", "v")
				n.link.Follow("master", 6379)
				time.Sleep(time.Minute)
				synctest.Wait()
				s := n.link.Status()
				if s.Problem == nil || !strings.Contains(s.Problem.Error(), test.says) || s.InStep || s.Synced {
					t.Errorf("%+v", s)
				}
				if test.seldom != (f.dials < 10) {
					t.Errorf("%d attempts in a minute", f.dials)
				}
				if got := n.do("GET", "own") + n.do("DBSIZE"); got != "v1" {
					t.Errorf("the data: %s", got)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := n.link.InStep(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("InStep: %v", err)
				}
				n.link.Close()
				close(f.conns)
			})
		})
	}
}

// A command that the replica cannot carry out breaks the link, and all data are sent again. The replica acknowledges when asked and every
// second; after a minute of silence, or a cut, the link continues where it was, before an incomplete transaction.
func TestAStreamThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{conns: make(chan net.Conn, 100)}
		n := start(t, f.dial)
		n.link.Follow("master", 6379)
		good := snapshot(rdb.TypeString)
		begin := func(want, answer string) (net.Conn, *bufio.Reader) {
			t.Helper()
			c := <-f.conns
			in := bufio.NewReader(c)
			if got := strings.Join(greet(c, in), " "); got != want {
				t.Fatalf("it asked %q, want %q", got, want)
			}
			io.WriteString(c, answer)
			return c, in
		}
		acked := func(in *bufio.Reader, want string) {
			t.Helper()
			args, err := command(in)
			if got := strings.Join(args, " "); err != nil || got != "REPLCONF ACK "+want {
				t.Fatalf("it said %q, %v, want ACK %s", got, err, want)
			}
		}
		full := "+FULLRESYNC " + id + " 100\r\n\n\n$EOF:" + id + "\r\n" + good + id
		c, in := begin("PSYNC ? -1", full)
		acked(in, "100")
		const set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
		io.WriteString(c, set)
		acked(in, fmt.Sprint(100+len(set)))
		getack := "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"
		began := time.Now()
		io.WriteString(c, getack)
		acked(in, fmt.Sprint(100+len(set)+len(getack)))
		if time.Since(began) > 0 {
			t.Error("GETACK was not answered at once")
		}
		io.WriteString(c, "*1\r\n$5\r\nMULTI\r\n"+set+set)
		time.Sleep(10 * time.Millisecond)
		c.Close()

		next := fmt.Sprint(100 + len(set) + len(getack) + 1)
		c, in = begin("PSYNC "+id+" "+next, "+CONTINUE\r\n")
		go io.Copy(io.Discard, in)
		began = time.Now()
		c2, in2 := begin("PSYNC "+id+" "+next, "+CONTINUE "+strings.ToUpper(id[:39])+"f\r\n")
		if silent := time.Since(began); silent < time.Minute || silent > 62*time.Second {
			t.Errorf("after %v of silence the link was made again", silent)
		}
		c.Close()
		go io.Copy(io.Discard, in2)
		io.WriteString(c2, "*3\r\n$9\r\nREPLICAOF\r\n$2\r\nNO\r\n$3\r\nONE\r\n")
		synctest.Wait()
		if s := n.link.Status(); s.Problem == nil || !strings.Contains(s.Problem.Error(), `the master sent a command that is not supported: "REPLICAOF"`) {
			t.Errorf("%+v", s)
		}
		c3, in3 := begin("PSYNC ? -1", full)
		acked(in3, "100")
		synctest.Wait()
		if got := n.do("GET", "of the master") + n.do("EXISTS", "k"); got != "v0" {
			t.Errorf("the data: %s", got)
		}
		if got := n.do("ROLE"); !strings.HasPrefix(got, "slave0 master0 6379 connected0 100") && !strings.Contains(got, "connected") {
			t.Errorf("ROLE: %s", got)
		}
		n.link.Close()
		c3.Close()
		c2.Close()
	})
}

// Sessions that wait for data that only writers bring learn that no writer will come; and a replica refuses commands that a link could not
// follow.
func TestBecomingAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{conns: make(chan net.Conn, 100)}
		n := start(t, f.dial)
		conn, err := n.s.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Write([]byte("BLPOP q 0\r\n"))
		synctest.Wait()
		for _, test := range [][2]string{
			{"REPLICAOF a b", "ERR value is not an integer or out of range"},
			{"REPLICAOF a 70000", "ERR Invalid master port"},
			{"REPLICAOF a 1", "OK"},
			{"SLAVEOF a 1", "OK Already connected to specified master"},
			{"SET k v", "READONLY You can't write against a read only replica."},
			{"PSYNC ? -1", "NOMASTERLINK Can't SYNC while not connected with my master"},
			{"SLAVEOF NO ONE", "OK"},
			{"REPLICAOF NO ONE", "OK"},
			{"SET k v", "OK"},
		} {
			if got := n.do(strings.Fields(test[0])...); got != test[1] {
				t.Errorf("%s: %s", test[0], got)
			}
		}
		b := make([]byte, 200)
		got, _ := conn.Read(b)
		if !bytes.HasPrefix(b[:got], []byte("-UNBLOCKED force unblock from blocking operation")) {
			t.Errorf("BLPOP: %q", b[:got])
		}
		if err := n.link.Promote(); err == nil {
			t.Error("a master was promoted")
		}
		if err := n.link.InStep(t.Context()); err == nil {
			t.Error("a master is in step with its master")
		}
	})
}
