package redistest

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// data is direct access to one database, bypassing connections, faults and the password: what Server and RedisDB have in common.
type data struct {
	srv *Server
	db  atomic.Int64
}

// RedisDB is one database of a Server, as DB returns it.
type RedisDB struct{ data }

var (
	// ErrKeyNotFound is returned for a key that does not exist.
	ErrKeyNotFound = errors.New("ERR no such key")
	// ErrWrongType is returned for a key that holds another type.
	ErrWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
)

// Exists reports whether a key exists.
func (d *data) Exists(k string) bool { return d.do("EXISTS", k).Int == 1 }

// Get returns a string.
func (d *data) Get(k string) (string, error) {
	if err := d.expect(k, "string"); err != nil {
		return "", err
	}
	return d.do("GET", k).Text, nil
}

// Set sets a string, without a deadline. Unlike the command it refuses to replace another type.
func (d *data) Set(k, v string) error {
	if err := d.expect(k, "string"); err == ErrWrongType {
		return err
	}
	return failure(d.do("SET", k, v))
}

// TTL returns the remaining TTL of a key, to the millisecond; 0 if it has no deadline, or does not exist.
func (d *data) TTL(k string) time.Duration {
	return time.Duration(max(d.do("PTTL", k).Int, 0)) * time.Millisecond
}

// SetTTL gives a key a TTL; 0: none.
func (d *data) SetTTL(k string, ttl time.Duration) {
	if ttl == 0 {
		d.do("PERSIST", k)
		return
	}
	d.do("PEXPIRE", k, strconv.FormatInt(ttl.Milliseconds(), 10))
}

// Del removes a key, and reports whether it existed.
func (d *data) Del(k string) bool { return d.do("DEL", k).Int == 1 }

// Keys returns all keys, sorted.
func (d *data) Keys() []string {
	keys := texts(d.do("KEYS", "*"))
	slices.Sort(keys)
	return keys
}

// FlushAll removes all keys of all databases.
func (s *Server) FlushAll() { s.do("FLUSHALL") }

// HGet returns a field of a hash, "" if it does not exist.
func (d *data) HGet(k, f string) string {
	if d.expect(k, "hash") != nil {
		return ""
	}
	return d.do("HGET", k, f).Text
}

// HSet sets fields of a hash to the values that follow them. A key of another type is replaced.
func (d *data) HSet(k string, fv ...string) {
	if d.expect(k, "hash") == ErrWrongType {
		d.Del(k)
	}
	d.do(append([]string{"HSET", k}, fv...)...)
}

// List returns the elements of a list.
func (d *data) List(k string) ([]string, error) {
	if err := d.expect(k, "list"); err != nil {
		return nil, err
	}
	return texts(d.do("LRANGE", k, "0", "-1")), nil
}

// Push appends to a list, and returns its length.
func (d *data) Push(k string, v ...string) (int, error) {
	v = append([]string{"RPUSH", k}, v...)
	if len(v) == 2 {
		v[0] = "LLEN"
	}
	reply := d.do(v...)
	return int(reply.Int), failure(reply)
}

// Lpush inserts v at the front of a list, and returns its length.
func (d *data) Lpush(k, v string) (int, error) {
	reply := d.do("LPUSH", k, v)
	return int(reply.Int), failure(reply)
}

// expect returns an error unless the key exists and has this type.
func (d *data) expect(k, kind string) error {
	switch d.do("TYPE", k).Text {
	case kind:
		return nil
	case "none":
		return ErrKeyNotFound
	}
	return ErrWrongType
}

// do runs one command, bypassing connections, faults, the log and the password.
func (d *data) do(args ...string) resp.Value {
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	var reply resp.Value
	d.srv.current().Do(func(now int64, e *engine.Engine) {
		session := e.NewSession(engine.SessionOptions{Addr: "redistest", LocalAddr: "redistest", Now: now, Trusted: true})
		if db := d.db.Load(); db != 0 {
			e.Do(now, session, [][]byte{[]byte("SELECT"), strconv.AppendInt(nil, db, 10)})
			session.Out.Rewind(resp.Mark{})
		}
		e.Do(now, session, words)
		reply, _ = resp.NewReader(bytes.NewReader(session.Out.Bytes())).Read()
		e.Drop(session)
	})
	return reply
}

// failure returns the error in a reply, or nil.
func failure(v resp.Value) error {
	switch {
	case v.Kind != '-':
		return nil
	}
	for _, err := range []error{ErrWrongType, ErrIntValueError, ErrIntValueOverflowError, ErrFloatValueError, ErrNotValidHllValue} {
		if v.Text == err.Error() {
			return err
		}
	}
	return errors.New(v.Text)
}

func texts(v resp.Value) []string {
	all := make([]string, len(v.List))
	for i, e := range v.List {
		all[i] = e.Text
	}
	return all
}
