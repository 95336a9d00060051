package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

func TestIdleConnectionsGetPushes(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		idle, c := newClient(t, dial()), newClient(t, dial())
		idle.send("SUBSCRIBE c")
		idle.get()
		for i := range 100 {
			c.want(fmt.Sprintf("PUBLISH c %d", i), "1")
			if got, want := idle.get(), fmt.Sprintf("*message c %d", i); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

// Publishers never wait for a subscriber that does not read: it is cut.
func TestASlowSubscriberIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := server.Limit{Hard: 1 << 20, Soft: 200_000, For: time.Minute}
		s := start(t, engine.Options{}, server.Options{Subscribers: limit})
		c := dial(t, s)
		message := "PUBLISH c " + strings.Repeat("m", 50_000)
		subscribe := func() *client {
			slow := dial(t, s)
			slow.send("SUBSCRIBE c")
			slow.get()
			return slow
		}

		hard := subscribe()
		published := 0
		for range 100 {
			c.send(message)
			if c.get() == "0" {
				break
			}
			published++
			synctest.Wait()
		}
		if published < 15 || published > 25 {
			t.Errorf("the hard limit of 1 MB was reached after %d messages of 50 KB", published)
		}
		io.Copy(io.Discard, hard.Conn) // ends

		soft := subscribe()
		for range 6 {
			c.want(message, "1")
		}
		time.Sleep(30 * time.Second)
		c.want(message, "1")
		time.Sleep(31 * time.Second)
		c.want(message, "1") // refused: over 200 KB for more than a minute
		synctest.Wait()
		c.want(message, "0")
		io.Copy(io.Discard, soft.Conn)

		fast := subscribe()
		for range 100 {
			c.want(message, "1")
			fast.get()
		}
	})
}

func TestAKilledConnectionEnds(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		a, b := newClient(t, dial()), newClient(t, dial())
		a.send("CLIENT ID")
		b.want("CLIENT KILL ID "+a.get(), "1")
		if got := a.ended(); got != "" {
			t.Error(got)
		}
		b.send("CLIENT ID")
		b.want("CLIENT KILL SKIPME no ID "+b.get(), "1")
		if got := b.ended(); got != "" {
			t.Error(got)
		}
	})
}
