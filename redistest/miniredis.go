package redistest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// What follows, and the direct access to data in direct.go, is for tests written for miniredis: they switch by changing one import, to
//
//	import miniredis "github.com/mayflycache/mayfly/redistest"
//
// docs/testing.md says what maps to what, and where the behaviour differs.

// Miniredis is miniredis's name for Server.
type Miniredis = Server

// Tester is what RunT needs from a test.
type Tester interface {
	Fatalf(string, ...any)
	Cleanup(func())
	Logf(format string, args ...any)
}

// NewMiniRedis returns a server that is not started. As with Run and RunT, a cluster client finds in it one node with all slots, whereas a
// server from Start says that it is not a cluster. New tests use Start.
func NewMiniRedis() *Server {
	s := newServer(nil, Options{})
	s.seeming = engine.NewCluster(1, 0)
	s.announce(memoryAddr(0))
	return s
}

// Run returns a server outside of any test. The caller has to Close it.
func Run() (*Server, error) {
	s := NewMiniRedis()
	return s, s.Start()
}

// RunT starts a server that stops when the test ends, as Start does.
func RunT(t Tester) *Server {
	s := NewMiniRedis()
	s.tb = t
	return s.mustOpen()
}

// RunTLS is Run with TLS.
func RunTLS(cfg *tls.Config) (*Server, error) {
	s := NewMiniRedis()
	return s, s.StartTLS(cfg)
}

// StartTLS is Start, with TLS for connections to Addr. The in-memory connections of Client and Dial stay plain.
func (s *Server) StartTLS(cfg *tls.Config) error {
	if cfg == nil {
		return errors.New("redistest: StartTLS needs a tls.Config with a certificate, got nil")
	}
	s.mu.Lock()
	s.tls = cfg
	s.mu.Unlock()
	return s.open()
}

// StartAddrTLS is StartAddr with TLS.
func (s *Server) StartAddrTLS(addr string, cfg *tls.Config) error {
	if err := s.StartTLS(cfg); err != nil {
		return err
	}
	return s.listenOrClose(addr)
}

// Start starts a server made by NewMiniRedis. Addr opens its port.
func (s *Server) Start() error { return s.open() }

// StartAddr starts a server made by NewMiniRedis, with a port at addr: "127.0.0.1:6379", ":6379" or "127.0.0.1:0".
func (s *Server) StartAddr(addr string) error {
	if err := s.open(); err != nil {
		return err
	}
	return s.listenOrClose(addr)
}

func (s *Server) listenOrClose(addr string) error {
	if _, err := s.listen(addr); err != nil {
		s.Close()
		return err
	}
	return nil
}

// Host returns the host of Addr.
func (s *Server) Host() string {
	host, _, _ := net.SplitHostPort(s.Addr())
	return host
}

// Port returns the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr())
	return port
}

// FastForward moves the clock forward, a millisecond further than Advance does: a key lives through the millisecond of its deadline, but
// tests written for miniredis expect that FastForward by its TTL ends it. The longest possible duration is not extended.
func (s *Server) FastForward(d time.Duration) {
	if 0 <= d && d <= math.MaxInt64-deadlineItself {
		d += deadlineItself
	}
	s.Advance(d)
}

const deadlineItself = time.Millisecond

// SetError answers every command with an error, until SetError("").
func (s *Server) SetError(msg string) { s.faults().FailAll(msg) }

// RequireAuth sets the password that new connections must send with AUTH; "" removes it. Open connections stay authenticated, as with Redis's
// CONFIG SET requirepass.
func (s *Server) RequireAuth(pw string) {
	s.RequireUserAuth("default", pw)
}

// RequireUserAuth requires new connections to send a name and a password with AUTH; an empty password removes the name. Client and Options
// use the latest.
func (s *Server) RequireUserAuth(username, pw string) {
	s.current().Do(func(_ int64, e *engine.Engine) { e.SetUser(username, pw) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.username, s.options.Password = username, pw
}

// Select chooses the database for direct access: Get, Set, Keys and so on. It is 0 at first.
func (s *Server) Select(i int) { s.db.Store(int64(s.database(i))) }

// DB returns a database for direct access, 0 to 15.
func (s *Server) DB(i int) *RedisDB {
	db := &RedisDB{data{srv: s}}
	db.db.Store(int64(s.database(i)))
	return db
}

// database checks the number of a database.
func (s *Server) database(i int) int {
	if i < 0 || i >= engine.Databases {
		s.fatal(fmt.Errorf("redistest: databases are numbered 0 to %d, got %d", engine.Databases-1, i))
		return 0
	}
	return i
}

// SwapDB exchanges the contents of two databases.
func (s *Server) SwapDB(i, j int) bool {
	return s.do("SWAPDB", strconv.Itoa(s.database(i)), strconv.Itoa(s.database(j))).Kind != '-'
}

// Copy copies a key into a database, replacing any key of that name.
func (s *Server) Copy(srcDB int, src string, destDB int, dest string) error {
	reply := s.DB(srcDB).do("COPY", src, dest, "DB", strconv.Itoa(s.database(destDB)), "REPLACE")
	if reply.Kind == ':' && reply.Int == 0 {
		return ErrKeyNotFound
	}
	return failure(reply)
}

// Publish sends a message to the subscribers of a channel, and returns their number.
func (s *Server) Publish(channel, message string) int {
	return int(s.do("PUBLISH", channel, message).Int)
}

// PubSubChannels returns the channels with subscribers that match a pattern, sorted; "" matches all.
func (s *Server) PubSubChannels(pattern string) []string {
	if pattern == "" {
		pattern = "*"
	}
	return texts(s.do("PUBSUB", "CHANNELS", pattern))
}

// PubSubNumSub returns the number of subscribers of each channel.
func (s *Server) PubSubNumSub(channels ...string) map[string]int {
	all := make(map[string]int)
	for _, channel := range channels {
		all[channel] = int(s.do("PUBSUB", "NUMSUB", channel).List[1].Int)
	}
	return all
}

// PubSubNumPat returns the number of subscribed patterns.
func (s *Server) PubSubNumPat() int { return int(s.do("PUBSUB", "NUMPAT").Int) }

// ClockTTL does nothing: the clock always runs.
func (s *Server) ClockTTL(bool) {}

// Seed restarts the random choices, such as those of SPOP and RANDOMKEY, from a seed.
func (s *Server) Seed(seed int) {
	s.current().Do(func(_ int64, e *engine.Engine) { e.Seed(uint64(seed)) })
}

// IsReadOnlyCommand reports whether a command only reads.
func (s *Server) IsReadOnlyCommand(cmd string) bool { return engine.ReadsOnly(cmd) }

// CommandCount returns the number of commands run.
func (s *Server) CommandCount() int { return int(s.figures().Commands) }

// CurrentConnectionCount returns the number of open connections.
func (s *Server) CurrentConnectionCount() int { return s.figures().Connected }

// TotalConnectionCount returns the number of connections ever opened.
func (s *Server) TotalConnectionCount() int { return int(s.figures().Connections) }

func (s *Server) figures() engine.Figures {
	f, _ := s.current().Figures()
	return f
}

// Other names of miniredis for the same methods.

// IncrByFloat is Incrfloat.
func (s *Server) IncrByFloat(k string, delta float64) (float64, error) { return s.Incrfloat(k, delta) }

// HIncrBy is HIncr.
func (s *Server) HIncrBy(k, f string, delta int) (int, error) { return s.HIncr(k, f, delta) }

// HIncrByFloat is HIncrfloat.
func (s *Server) HIncrByFloat(k, f string, delta float64) (float64, error) {
	return s.HIncrfloat(k, f, delta)
}

// RPush is Push.
func (s *Server) RPush(k string, v ...string) (int, error) { return s.Push(k, v...) }

// RPop is Pop.
func (s *Server) RPop(k string) (string, error) { return s.Pop(k) }

// SAdd is SetAdd.
func (s *Server) SAdd(k string, elems ...string) (int, error) { return s.SetAdd(k, elems...) }

// SMembers is Members.
func (s *Server) SMembers(k string) ([]string, error) { return s.Members(k) }

// SIsMember is IsMember.
func (s *Server) SIsMember(k, v string) (bool, error) { return s.IsMember(k, v) }

// PfAdd is HllAdd.
func (s *Server) PfAdd(k string, elems ...string) (int, error) { return s.HllAdd(k, elems...) }

// PfCount is HllCount.
func (s *Server) PfCount(keys ...string) (int, error) { return s.HllCount(keys...) }

// PfMerge is HllMerge.
func (s *Server) PfMerge(destKey string, sourceKeys ...string) error {
	return s.HllMerge(destKey, sourceKeys...)
}

// ZMScore returns the scores of members, 0 for those that do not exist.
func (s *Server) ZMScore(k string, members ...string) ([]float64, error) {
	return s.zmscore(k, members)
}
