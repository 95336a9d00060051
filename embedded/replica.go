package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/replica"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// Master is whom a DB follows. The replica has all keys, values and ends of its master, and from then on what the master does; it hides what is dead and
// removes it when the master does; writes to it are refused with READONLY. The link is made again when it breaks, and what was missed comes from
// the master's backlog, if that is long enough, else all data come again. With Options.Dir they are kept on disk as well.
//
// A master that holds what the engine does not know (streams, modules, functions) cannot be followed: the DB keeps what it has, and Replication
// and InStep say why.
type Master struct {
	Addr     string // host:port; empty: none
	Username string // with Password: what AUTH tells the master; empty: the default user
	Password string

	// TLS, if not nil, is how the link is secured. Empty ServerName: the host of Addr. It holds for masters that REPLICAOF names, too.
	TLS *tls.Config
}

func (m Master) validate() error {
	if m.Addr == "" {
		if m.Username != "" || m.Password != "" || m.TLS != nil {
			return errors.New("embedded: Options.ReplicaOf has no Addr: it must be host:port of the master")
		}
		return nil
	}
	host, _, err := m.split()
	switch {
	case err != nil:
		return fmt.Errorf("embedded: Options.ReplicaOf.Addr must be host:port, got %q: %w", m.Addr, err)
	case host == "":
		return fmt.Errorf("embedded: Options.ReplicaOf.Addr must name a host before the port, got %q", m.Addr)
	case m.Username != "" && m.Password == "":
		return errors.New("embedded: Options.ReplicaOf has a Username and no Password")
	}
	return nil
}

func (m Master) split() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is no port", text)
	}
	return host, port, nil
}

// dial returns how masters are reached; nil: by TCP.
func (m Master) dial() func(ctx context.Context, addr string) (net.Conn, error) {
	if m.TLS == nil {
		return nil
	}
	config := m.TLS.Clone()
	return func(ctx context.Context, addr string) (net.Conn, error) {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
	}
}

// follow begins to follow m, if it is anybody.
func (m Master) follow(s *server.Server, link *replica.Link) {
	if m.Addr == "" {
		return
	}
	s.Do(func(_ int64, e *engine.Engine) { e.SetCredentials(m.Username, m.Password) })
	host, port, _ := m.split()
	link.Follow(host, port)
}

// Replication says how a replica stands.
type Replication struct {
	Of      string    // host:port of the master; empty: it is none, or none any more
	InStep  bool      // the link is up, and what the master sends is done at once
	Synced  bool      // it has been in step at least once: there is something to promote
	Offset  int64     // how far in the master's stream it has come
	Heard   time.Time // when the master was heard last; zero: never
	Problem error     // why there is no link, or why the last one ended; nil: there is one, or it is being made
}

// Replication returns how the DB stands as a replica. The zero value: it is none.
func (db *DB) Replication() Replication { return Replication(db.link.Status()) }

// InStep waits until a replica has all that its master had when it came to it, and gets what the master does from then on. If ctx ends before that, the error
// is ctx's and says what stands in the way. It is an error for a DB that is no replica.
func (db *DB) InStep(ctx context.Context) error {
	if err := db.link.InStep(ctx); err != nil {
		return fmt.Errorf("embedded: InStep: %w", err)
	}
	return nil
}

// Promote makes a replica a master of its own. When it returns, nothing that the old master says is done any more; writes are done; and what is dead
// expires, each key at the deadline that its master gave it. Whoever wrote to the old master meanwhile wrote to it alone: stop them first, as
// docs/growing.md shows. It is an error for a DB that is no replica, and for one that never got anything.
func (db *DB) Promote() error {
	if s := db.link.Status(); s.Of != "" && !s.Synced && db.Stats().Keys == 0 {
		err := fmt.Errorf("embedded: Promote: nothing has come from %s yet, so there is nothing to go on with", s.Of)
		if s.Problem != nil {
			err = fmt.Errorf("%w: %w", err, s.Problem)
		}
		return err
	}
	if err := db.link.Promote(); err != nil {
		return fmt.Errorf("embedded: Promote: %w", err)
	}
	return nil
}
