package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// arrived returns the replies received so far.
func (c *client) arrived() string {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	defer c.SetReadDeadline(time.Time{})
	var got []string
	for {
		v, err := c.replies.Read()
		if err != nil {
			return strings.Join(got, ",")
		}
		got = append(got, text(v))
	}
}

// A pause holds back writes while reads go on; nothing expires or is removed. Held commands run when the pause ends, in order on each
// connection, including transactions and scripts; the command of a client that has left is dropped.
func TestAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		operator, writer, reader, script, transaction, leaver := dial(t, s), dial(t, s), dial(t, s), dial(t, s), dial(t, s), dial(t, s)
		operator.want("SET short v PX 1000", "OK")
		operator.want("SET k v", "OK")
		operator.want("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range")
		operator.want("CLIENT PAUSE -1", "-ERR timeout is negative")
		operator.want("CLIENT PAUSE 10 READ", "-ERR CLIENT PAUSE mode must be WRITE or ALL")
		operator.want("CLIENT PAUSE 10000 WRITE", "OK")
		operator.want("CLIENT PAUSE 1 WRITE", "OK") // the longer pause wins
		writer.send("INCR n", "INCR n", "GET k")
		script.send(`EVAL "return redis.call('INCR', 'n')" 0`)
		transaction.send("MULTI", "INCR n", "EXEC")
		leaver.send("SET left v")
		synctest.Wait()
		operator.want("CLIENT UNBLOCK "+leaver.id(operator, "set"), "0")
		leaver.Close()
		time.Sleep(5 * time.Second)
		for c, want := range map[*client]string{writer: "", script: "", transaction: "OK"} {
			if got := c.arrived(); got != want {
				t.Errorf("in the pause: %q, want %q", got, want)
			}
		}
		reader.want("GET k", "v")
		reader.want("GET short", "null")
		reader.want("DBSIZE", "2")
		time.Sleep(6 * time.Second)
		got := writer.arrived() + " " + script.arrived() + " " + transaction.arrived()
		if len(got) != len("1,2,v 3 QUEUED,*4") || !strings.HasSuffix(strings.Fields(got)[0], ",v") || !strings.Contains(got, " QUEUED,*") {
			t.Errorf("after the pause: %q", got)
		}
		reader.want("GET n", "4")
		reader.want("EXISTS short left", "0")
		reader.want("DBSIZE", "2")

		operator.want("CLIENT PAUSE 100000", "OK")
		reader.send("GET k")
		operator.send("CLIENT UNPAUSE") // waits as well, as in Redis
		time.Sleep(99 * time.Second)
		if got := reader.arrived() + operator.arrived(); got != "" {
			t.Errorf("when all pause: %q", got)
		}
		time.Sleep(2 * time.Second)
		if got := reader.arrived() + operator.arrived(); got != "vOK" {
			t.Errorf("after the pause of all: %q", got)
		}

		operator.want("CLIENT PAUSE 100000 WRITE", "OK")
		writer.send("INCR n")
		synctest.Wait()
		operator.want("CLIENT UNPAUSE", "OK")
		if got := writer.get(); got != "5" {
			t.Errorf("after UNPAUSE: %q", got)
		}
	})
}

// id returns the number of the connection whose last command was this one, as operator sees it.
func (c *client) id(operator *client, cmd string) string {
	operator.send("CLIENT LIST")
	for line := range strings.Lines(operator.get()) {
		if strings.Contains(line, "cmd="+cmd+" ") && !strings.Contains(line, "name=operator") {
			return strings.TrimPrefix(strings.Fields(line)[0], "id=")
		}
	}
	return "0"
}
