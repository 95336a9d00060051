package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

var (
	// ErrKeyNotFound is returned for a key that does not exist.
	ErrKeyNotFound = errors.New("ERR no such key")
	// ErrWrongType is returned for a key that holds another type.
	ErrWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
)

// DumpMaxLineLen is the length to which Dump cuts values.
var DumpMaxLineLen = 60

// T is what CheckGet and CheckList need of a test.
type T interface {
	Helper()
	Errorf(string, ...any)
}

// Exists reports whether a key exists in database 0, as all of these do.
func (s *Server) Exists(k string) bool { return s.do("EXISTS", k).Int == 1 }

// Get returns a string.
func (s *Server) Get(k string) (string, error) {
	if err := s.expect(k, "string"); err != nil {
		return "", err
	}
	return s.do("GET", k).Text, nil
}

// Set sets a string, without a deadline. Unlike the command it refuses to replace another type.
func (s *Server) Set(k, v string) error {
	if err := s.expect(k, "string"); err == ErrWrongType {
		return err
	}
	return failure(s.do("SET", k, v))
}

// TTL returns how long a key has left, to the millisecond; 0 if it has no deadline, or does not exist.
func (s *Server) TTL(k string) time.Duration {
	return time.Duration(max(s.do("PTTL", k).Int, 0)) * time.Millisecond
}

// SetTTL gives a key so long to live; 0: for ever.
func (s *Server) SetTTL(k string, ttl time.Duration) {
	if ttl == 0 {
		s.do("PERSIST", k)
		return
	}
	s.do("PEXPIRE", k, strconv.FormatInt(ttl.Milliseconds(), 10))
}

// Del removes a key, and reports whether there was one.
func (s *Server) Del(k string) bool { return s.do("DEL", k).Int == 1 }

// Keys returns all keys, sorted.
func (s *Server) Keys() []string {
	keys := texts(s.do("KEYS", "*"))
	slices.Sort(keys)
	return keys
}

// FlushAll removes all keys of all databases.
func (s *Server) FlushAll() { s.do("FLUSHALL") }

// HGet returns a field of a hash, "" if there is none.
func (s *Server) HGet(k, f string) string {
	if s.expect(k, "hash") != nil {
		return ""
	}
	return s.do("HGET", k, f).Text
}

// HSet sets fields of a hash to the values that follow them. A key of another type is replaced.
func (s *Server) HSet(k string, fv ...string) {
	if s.expect(k, "hash") == ErrWrongType {
		s.Del(k)
	}
	s.do(append([]string{"HSET", k}, fv...)...)
}

// List returns a list.
func (s *Server) List(k string) ([]string, error) {
	if err := s.expect(k, "list"); err != nil {
		return nil, err
	}
	return texts(s.do("LRANGE", k, "0", "-1")), nil
}

// Push appends to a list, and returns its length.
func (s *Server) Push(k string, v ...string) (int, error) {
	v = append([]string{"RPUSH", k}, v...)
	if len(v) == 2 {
		v[0] = "LLEN"
	}
	reply := s.do(v...)
	return int(reply.Int), failure(reply)
}

// Lpush puts v before the first of a list, and returns its length.
func (s *Server) Lpush(k, v string) (int, error) {
	reply := s.do("LPUSH", k, v)
	return int(reply.Int), failure(reply)
}

// CheckGet fails the test unless the string is as expected.
func (s *Server) CheckGet(t T, key, expected string) {
	t.Helper()
	switch found, err := s.Get(key); {
	case err != nil:
		t.Errorf("GET error, key %#v: %v", key, err)
	case found != expected:
		t.Errorf("GET error, key %#v: Expected %#v, got %#v", key, expected, found)
	}
}

// CheckList fails the test unless the list is as expected.
func (s *Server) CheckList(t T, key string, expected ...string) {
	t.Helper()
	switch found, err := s.List(key); {
	case err != nil:
		t.Errorf("List error, key %#v: %v", key, err)
	case !slices.Equal(expected, found):
		t.Errorf("List error, key %#v: Expected %#v, got %#v", key, expected, found)
	}
}

// Dump returns the data as text, for people.
func (s *Server) Dump() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "   "+format+"\n", args...) }
	each := func(values []string) {
		for _, v := range values {
			line("%s", shorten(v))
		}
	}
	for _, k := range s.Keys() {
		fmt.Fprintf(&b, "- %s\n", k)
		switch kind := s.do("TYPE", k).Text; kind {
		case "string":
			each([]string{s.do("GET", k).Text})
		case "hash":
			for _, f := range slices.Sorted(slices.Values(texts(s.do("HKEYS", k)))) {
				line("%s: %s", f, shorten(s.do("HGET", k, f).Text))
			}
		case "list":
			each(texts(s.do("LRANGE", k, "0", "-1")))
		case "set":
			each(slices.Sorted(slices.Values(texts(s.do("SMEMBERS", k)))))
		case "zset":
			for pair := range slices.Chunk(texts(s.do("ZRANGE", k, "0", "-1", "WITHSCORES")), 2) {
				score, _ := strconv.ParseFloat(pair[1], 64)
				line("%f: %s", score, shorten(pair[0]))
			}
		default:
			line("(a %s)", kind)
		}
	}
	return b.String()
}

// shorten quotes a value, and cuts it to DumpMaxLineLen.
func shorten(v string) string {
	suffix := ""
	if len(v) > DumpMaxLineLen {
		suffix = fmt.Sprintf("...(%d)", len(v))
		v = v[:max(DumpMaxLineLen-len(suffix), 0)]
	}
	return fmt.Sprintf("%q%s", v, suffix)
}

// expect returns an error unless the key exists and is of the type.
func (s *Server) expect(k, kind string) error {
	switch s.do("TYPE", k).Text {
	case kind:
		return nil
	case "none":
		return ErrKeyNotFound
	}
	return ErrWrongType
}

// do runs one command, past connections, faults, the log and the password.
func (s *Server) do(args ...string) resp.Value {
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	var reply resp.Value
	s.current().Do(func(now int64, e *engine.Engine) {
		session := e.NewSession(engine.SessionOptions{Addr: "redistest", LocalAddr: "redistest", Now: now, Trusted: true})
		e.Do(now, session, words)
		reply, _ = resp.NewReader(bytes.NewReader(session.Out.Bytes())).Read()
		e.Drop(session)
	})
	return reply
}

// failure returns the error that a reply is.
func failure(v resp.Value) error {
	switch {
	case v.Kind != '-':
		return nil
	case v.Text == ErrWrongType.Error():
		return ErrWrongType
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
