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

// checkMaster returns an error if the options of a replica are wrong.
func (o Options) checkMaster() error {
	if o.ReplicaOf == "" {
		if o.MasterUsername != "" || o.MasterPassword != "" || o.MasterTLS != nil {
			return errors.New("embedded: Options.ReplicaOf is empty, and MasterUsername, MasterPassword or MasterTLS is set: ReplicaOf must be host:port of the master")
		}
		return nil
	}
	host, _, err := o.master()
	switch {
	case err != nil:
		return fmt.Errorf("embedded: Options.ReplicaOf must be host:port, got %q: %w", o.ReplicaOf, err)
	case host == "":
		return fmt.Errorf("embedded: Options.ReplicaOf must name a host before the port, got %q", o.ReplicaOf)
	case o.MasterUsername != "" && o.MasterPassword == "":
		return errors.New("embedded: Options.MasterUsername is set, but no MasterPassword")
	}
	return nil
}

// master splits ReplicaOf.
func (o Options) master() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.ReplicaOf)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is not a port", text)
	}
	return host, port, nil
}

// dialMaster returns the dialer for masters; nil: plain TCP.
func (o Options) dialMaster() func(ctx context.Context, addr string) (net.Conn, error) {
	if o.MasterTLS == nil {
		return nil
	}
	config := o.MasterTLS.Clone()
	return func(ctx context.Context, addr string) (net.Conn, error) {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
	}
}

// follow begins to follow the master, if there is one.
func (o Options) follow(s *server.Server, link *replica.Link) {
	if o.ReplicaOf == "" {
		return
	}
	s.Do(func(_ int64, e *engine.Engine) { e.SetCredentials(o.MasterUsername, o.MasterPassword) })
	host, port, _ := o.master()
	link.Follow(host, port)
}

// Replication describes a replica.
type Replication struct {
	Of      string    // host:port of the master; empty: the DB follows none
	InStep  bool      // the link is up, and the master's effects are carried out as they come
	Synced  bool      // it has been in step at least once, so it can be promoted
	Offset  int64     // its position in the master's stream
	Heard   time.Time // when the master was last heard from; zero: never
	Problem error     // why there is no link, or why the last one ended; nil: there is one, or it is being made
}

// Replication returns the state of the DB as a replica. The zero value means that it is not a replica.
func (db *DB) Replication() Replication { return Replication(db.link.Status()) }

// InStep waits until a replica has all data that its master had at the start, and receives what the master does from then on. If ctx ends
// first, the error is ctx's and says what is missing. It is an error for a DB that is not a replica.
func (db *DB) InStep(ctx context.Context) error {
	if err := db.link.InStep(ctx); err != nil {
		return fmt.Errorf("embedded: InStep: %w", err)
	}
	return nil
}

// Promote turns a replica into a master. When it returns, no more effects of the old master are carried out, writes are accepted, and keys
// expire at the deadlines that the old master gave them. Writes sent to the old master from then on stay there alone: stop the writers first,
// as docs/growing.md shows. It is an error for a DB that is not a replica, and for one that never received any data.
func (db *DB) Promote() error {
	if s := db.link.Status(); s.Of != "" && !s.Synced && db.Stats().Keys == 0 {
		err := fmt.Errorf("embedded: Promote: nothing has come from %s yet, so there is no data to serve", s.Of)
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
