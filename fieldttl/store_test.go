package fieldttl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
)

// inBothWays runs what is about time, in a bubble.
func inBothWays(t *testing.T, test func(t *testing.T, o opened, srv *redistest.Server)) {
	for name, apart := range map[string]bool{"as 8.0": false, "as 7.4": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				test(t, opened{srv.Client(), apart}, srv)
			})
		})
	}
}

// Each field ends at its own time, to the millisecond, and the rest with the key.
func TestTime(t *testing.T) {
	inBothWays(t, func(t *testing.T, o opened, _ *redistest.Server) {
		s := store[session](t, o)
		expect.OK(t, s.Set(t.Context(), "a", ada))
		time.Sleep(15 * time.Minute)
		gets(t, s, "a", ada, "user_id ip csrf_token")
		time.Sleep(time.Millisecond)
		gets(t, s, "a", session{UserID: 1001, IP: "192.168.1.1"}, "user_id ip")
		time.Sleep(44*time.Minute + 59999*time.Millisecond) // an hour
		expect.OK(t, s.TouchFields(t.Context(), "a", "ip"))
		time.Sleep(time.Hour)
		gets(t, s, "a", session{UserID: 1001, IP: "192.168.1.1"}, "user_id ip")
		time.Sleep(time.Millisecond)
		gets(t, s, "a", session{UserID: 1001}, "user_id")
		expect.OK(t, s.Touch(t.Context(), "a"))
		time.Sleep(day)
		gets(t, s, "a", session{UserID: 1001}, "user_id")
		time.Sleep(time.Millisecond)
		absent(t, s, "a")
	})
}

// A field of a TTL that was persisted, or is longer than the key's, ends with the key.
func TestNoFieldOutlivesItsKey(t *testing.T) {
	inBothWays(t, func(t *testing.T, o opened, _ *redistest.Server) {
		type long struct {
			A string `redis:"a,ttl=48h"`
			B string `redis:"b,ttl=1m"`
		}
		s := store[long](t, o)
		expect.OK(t, s.Set(t.Context(), "x", long{"a", "b"}))
		expect.OK(t, s.PersistFields(t.Context(), "x", "b"))
		if ofKey, left, err := s.TTLs(t.Context(), "x"); err != nil || ofKey != day || left["a"] != day || left["b"] != day {
			t.Errorf("TTLs are %v and %v, %v", ofKey, left, err)
		}
		time.Sleep(day)
		if e := expect.Value(s.Get(t.Context(), "x"))(t); e.Value != (long{"a", "b"}) {
			t.Errorf("got %+v", e)
		}
		time.Sleep(time.Millisecond)
		if _, err := s.Get(t.Context(), "x"); !errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("got error %v", err)
		}
	})
}

// A hash of fields that end is gone with the last of them.
func TestTheLastFieldTakesTheKeyAlong(t *testing.T) {
	inBothWays(t, func(t *testing.T, o opened, _ *redistest.Server) {
		s := store[session](t, o)
		expect.OK(t, s.SetFields(t.Context(), "a", ada, "ip", "csrf_token"))
		time.Sleep(time.Hour)
		gets(t, s, "a", session{IP: "192.168.1.1"}, "ip")
		time.Sleep(time.Millisecond)
		absent(t, s, "a")
		if n := o.rdb.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// A write sends one question about the server ever, and a transaction.
func TestTheTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		apart bool
		want  []string
	}{
		"as 8.0": {false, []string{
			"multi", "pexpiretime s:a", "hkeys s:a", "hset s:a user_id 1001", "hsetex s:a px 3600000 fields 1 ip 192.168.1.1",
			"hsetex s:a px 900000 fields 1 csrf_token xyz123", "pexpire s:a 86400000", "exec",
		}},
		"as 7.4": {true, []string{
			"multi", "pexpiretime s:a", "hkeys s:a", "hset s:a user_id 1001", "hset s:a ip 192.168.1.1", "hpexpire s:a 3600000 fields 1 ip",
			"hset s:a csrf_token xyz123", "hpexpire s:a 900000 fields 1 csrf_token", "pexpire s:a 86400000", "exec",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			space := ns[session](t, srv.Client())
			space.Prefix = "s:"
			s := expect.Value(fieldttl.New(space, fieldttl.Options{RedisTimeout: patient}))(t)
			if c.apart {
				s.Apart()
			}
			expect.OK(t, s.Set(t.Context(), "a", ada))
			expect.OK(t, s.Set(t.Context(), "b", ada))
			log := srv.Log()
			if begin := slices.Index(log, "multi"); !slices.Equal(log[begin:begin+len(c.want)], c.want) {
				t.Errorf("sent\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(c.want, "\n"))
			}
			asked := slices.DeleteFunc(slices.Clone(log), func(line string) bool { return line != "hpexpire s:a" && line != "hpexpire s:b" })
			if len(asked) > 1 {
				t.Errorf("the server was asked what it can %d times", len(asked))
			}
		})
	}
}

// The answer of a server that was replaced by an older one is asked for again.
func TestAServerThatIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // go-redis waits between its attempts
		srv := redistest.Start(t)
		s := store[session](t, opened{rdb: srv.Client()})
		expect.OK(t, s.Set(t.Context(), "a", ada))
		srv.FailNext("hsetex", "ERR unknown command 'hsetex', with args beginning with: ")
		if err := s.Set(t.Context(), "b", ada); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("got error %v", err)
		}
		absent(t, s, "b") // and it was asked, and can again
		expect.OK(t, s.Set(t.Context(), "b", ada))
		srv.Refuse(true)
		srv.KillConnections()
		fresh := store[session](t, opened{rdb: srv.Client()})
		if _, err := fresh.Get(t.Context(), "a"); err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("a server that cannot be asked: %v", err)
		}
		srv.Refuse(false)
		time.Sleep(time.Minute) // go-redis has given up its dials
		gets(t, fresh, "a", ada, "user_id ip csrf_token")
	})
}

// A write whose reply is lost is not sent again, though the client would.
func TestALostReply(t *testing.T) {
	inBothWays(t, func(t *testing.T, o opened, srv *redistest.Server) {
		s, ctx := store[session](t, o), t.Context()
		expect.OK(t, s.Set(ctx, "a", ada))
		for name, write := range map[string]func() error{
			"exec": func() error { return s.Set(ctx, "a", session{UserID: 7}) },
			"hdel": func() error { return s.DeleteFields(ctx, "a", "ip") },
			"eval": func() error { return s.Delete(ctx, "a") },
		} {
			srv.ClearLog()
			srv.DropReply(name)
			if err := write(); !errors.Is(err, mayfly.ErrUnknownOutcome) {
				t.Errorf("%s: a lost reply is %v", name, err)
			}
			sent := 0
			for _, line := range srv.Log() {
				if verb, _, _ := strings.Cut(line, " "); verb == name {
					sent++
				}
			}
			if sent != 1 {
				t.Errorf("%s was sent %d times", name, sent)
			}
		}
	})
}

// A server that refuses one command of the transaction does none of them.
func TestATransactionThatIsRefused(t *testing.T) {
	srv := redistest.Start(t)
	s := store[session](t, opened{rdb: srv.Client()})
	expect.OK(t, s.Set(t.Context(), "a", ada))
	srv.FailNext("pexpire", "OOM command not allowed when used memory > 'maxmemory'.")
	if err := s.Set(t.Context(), "a", session{}); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
		t.Errorf("got error %v", err)
	}
	gets(t, s, "a", ada, "user_id ip csrf_token")
}

func TestJitter(t *testing.T) {
	rdb := redistest.Start(t).Client()
	space := ns[session](t, rdb)
	space.Jitter = jitter.Default.Seeded(1)
	s := expect.Value(fieldttl.New(space, fieldttl.Options{RedisTimeout: patient}))(t)
	ends := map[time.Duration]bool{}
	for _, key := range []string{"a", "b", "c", "d"} {
		expect.OK(t, s.Set(t.Context(), key, ada))
		ofKey, left, err := s.TTLs(t.Context(), key)
		expect.OK(t, err)
		ends[ofKey.Truncate(time.Minute)] = true
		if ofKey < day*9/10-time.Minute || ofKey > day*11/10 || left["ip"] > time.Hour || left["ip"] < 59*time.Minute {
			t.Errorf("TTLs are %v and %v", ofKey, left)
		}
	}
	if len(ends) < 4 {
		t.Errorf("four keys end at %v", ends)
	}
}

func TestBadTypes(t *testing.T) {
	rdb := redistest.Start(t).Client()
	bad(t, ns[int](t, rdb), "the values must be structs whose fields have redis tags, got int")
	bad(t, ns[*session](t, rdb), "the values must be structs whose fields have redis tags, got *fieldttl_test.session")
	bad(t, ns[struct{}](t, rdb), "struct {} has no field with a redis tag")
	type tagless struct {
		Name string
	}
	bad(t, ns[tagless](t, rdb), "fieldttl: field fieldttl_test.tagless.Name: it has no redis tag: give it a name, as in `redis:\"name\"`")
	type unexported struct {
		_ string `redis:"name"`
	}
	bad(t, ns[unexported](t, rdb), "field fieldttl_test.unexported._ `redis:\"name\"`: it is not exported")
	type byPointer struct {
		*embedded
		Name string `redis:"name"`
	}
	bad(t, ns[byPointer](t, rdb), "field fieldttl_test.byPointer.embedded: it is embedded and its fields have redis tags, but nobody can set it")
	type deeper struct {
		*holder
		Name string `redis:"name"`
	}
	bad(t, ns[deeper](t, rdb), "field fieldttl_test.deeper.holder: it is embedded")
	type nothingToLose struct {
		*address
		Name string `redis:"name"`
	}
	if _, err := fieldttl.New(ns[nothingToLose](t, rdb), fieldttl.Options{RedisTimeout: patient}); err != nil {
		t.Errorf("what is embedded has no tags: %v", err)
	}
	type nameless struct {
		A string `redis:",ttl=1h"`
		B string `redis:""`
	}
	bad(t, ns[nameless](t, rdb), "nameless.A `redis:\",ttl=1h\"`: the field's name in Redis is missing: it comes first", "nameless.B `redis:\"\"`: the field's name in Redis is missing")
	type options struct {
		A string `redis:"a,omitempty"`
		B string `redis:"b,ttl=1h,ttl=2h"`
		C string `redis:"c,"`
		D string `redis:"d,TTL=1h"`
	}
	bad(t, ns[options](t, rdb), "options.A `redis:\"a,omitempty\"`: unknown option \"omitempty\"", "options.B `redis:\"b,ttl=1h,ttl=2h\"`: it has two TTLs",
		"options.C `redis:\"c,\"`: unknown option \"\"", "options.D `redis:\"d,TTL=1h\"`: unknown option \"TTL=1h\"")
	type ttls struct {
		A string `redis:"a,ttl=soon"`
		B string `redis:"b,ttl=15"`
		C string `redis:"c,ttl=999us"`
		D string `redis:"d,ttl=0s"`
		E string `redis:"e,ttl=-1h"`
		F string `redis:"f,ttl=1000000h"`
		G string `redis:"g,ttl="`
	}
	bad(t, ns[ttls](t, rdb), "ttls.A `redis:\"a,ttl=soon\"`: the ttl must be a duration such as 15m or 1h30m, got \"soon\"",
		"ttls.B `redis:\"b,ttl=15\"`: the ttl must be a duration", "ttls.C `redis:\"c,ttl=999us\"`: the ttl must be at least 1ms, got 999µs",
		"ttls.D `redis:\"d,ttl=0s\"`: the ttl must be at least 1ms, got 0s", "ttls.E `redis:\"e,ttl=-1h\"`: the ttl must be at least 1ms, got -1h0m0s",
		"ttls.F `redis:\"f,ttl=1000000h\"`: the ttl must be at most", "ttls.G `redis:\"g,ttl=\"`: the ttl must be a duration")
	type twice struct {
		A string `redis:"a"`
		B string `redis:"a,ttl=1h"`
		embedded
		C string `redis:"inner"`
	}
	bad(t, ns[twice](t, rdb), "twice.B `redis:\"a,ttl=1h\"`: the name \"a\" is that of field A too", "twice.C `redis:\"inner\"`: the name \"inner\" is that of field Inner too")
	type kinds struct {
		A chan int           `redis:"a"`
		B func()             `redis:"b"`
		C complex128         `redis:"c"`
		D **int              `redis:"d"`
		E error              `redis:"e"`
		F []chan int         `redis:"f"`
		G struct{ X func() } `redis:"g"`
		H map[string]error   `redis:"h"`
		time.Time
	}
	bad(t, ns[kinds](t, rdb), "kinds.A `redis:\"a\"`: a chan int has no text: leave it out by `redis:\"-\"`", "kinds.B `redis:\"b\"`: a func() has no text",
		"kinds.C `redis:\"c\"`: a complex128 has no text", "kinds.D `redis:\"d\"`: a field cannot have the type **int",
		"kinds.E `redis:\"e\"`: a error cannot be read back", "kinds.F `redis:\"f\"`: a chan int", "kinds.G `redis:\"g\"`: a func()", "kinds.H `redis:\"h\"`: a error",
		"field fieldttl_test.kinds.Time: it has no redis tag")
}

// A field that ends between the read and the write was changed, too.
func TestUpdateOfAFieldThatEnds(t *testing.T) {
	inBothWays(t, func(t *testing.T, o opened, _ *redistest.Server) {
		s, ctx := store[basket](t, o), t.Context()
		expect.OK(t, s.Set(ctx, "u", basket{User: 7, Items: []string{"a pen"}}))
		var alive []bool
		b := expect.Value(s.Update(ctx, "u", func(e entry) (basket, error) {
			if alive = append(alive, e.Alive("items")); len(alive) == 1 {
				time.Sleep(2 * time.Hour)
			}
			e.Value.Items = append(e.Value.Items, "a book")
			return e.Value, nil
		}, "items"))(t)
		if !slices.Equal(alive, []bool{true, false}) || !slices.Equal(b.Items, []string{"a book"}) {
			t.Errorf("%v, %+v", alive, b)
		}
		if _, err := s.Update(ctx, "u", func(e entry) (basket, error) {
			time.Sleep(day)
			return e.Value, nil
		}, "items"); !errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("of a hash that ended: %v", err)
		}
		if n := o.rdb.DBSize(ctx).Val(); n != 0 {
			t.Errorf("%d keys are there", n)
		}
	})
}

func TestBadNamespaces(t *testing.T) {
	rdb := redistest.Start(t).Client()
	space := ns[session](t, rdb)
	local := expect.Value(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{space.Prefix}, MaxEntries: 1}))(t)
	defer local.Close(t.Context())
	space.Codec, space.Local, space.TTL = mayfly.JSON[session]{}, local, 0
	bad(t, space, "fieldttl: Namespace.TTL must be at least 1ms, got 0s", "fieldttl: Namespace.Codec must be nil", "fieldttl: Namespace.Local must be nil")
	space = ns[session](t, rdb)
	space.Plain, space.Clone, space.Cost = true, func(s session) session { return s }, func(session) int { return 1 }
	bad(t, space, "fieldttl: Namespace.Plain must be false: each field is written in its own form", "fieldttl: Namespace.Clone must be nil", "fieldttl: Namespace.Cost must be nil")
	if _, err := fieldttl.New(ns[session](t, rdb), fieldttl.Options{RedisTimeout: -time.Second}); err == nil || err.Error() != "fieldttl: Options.RedisTimeout must be at least 1ms, got -1s" {
		t.Error(err)
	}
}

func bad[T any](t *testing.T, space mayfly.Namespace[string, T], want ...string) {
	t.Helper()
	_, err := fieldttl.New(space, fieldttl.Options{RedisTimeout: patient})
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got error %v, want %q", err, w)
		}
	}
}

// holder has tags through what it embeds.
type holder struct{ *embedded }

// Fields of different TTLs are persisted by one command: it takes no TTL.
func TestPersistIsOneCommand(t *testing.T) {
	srv := redistest.Start(t)
	s := expect.Value(fieldttl.New(ns[forms](t, srv.Client()), fieldttl.Options{RedisTimeout: patient}))(t)
	expect.OK(t, s.Set(t.Context(), "a", forms{}))
	srv.ClearLog()
	expect.OK(t, s.PersistFields(t.Context(), "a", "text", "int64", "bool"))
	if sent := strings.Join(srv.Log(), "\n"); strings.Count(strings.ToLower(sent), "hpersist") != 1 {
		t.Errorf("sent\n%s", sent)
	}
}
