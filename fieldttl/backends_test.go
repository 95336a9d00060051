package fieldttl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// behaviours hold on every backend, in both ways. Each uses keys of its own, and waits for nothing.
var behaviours = []struct {
	name string
	test func(t *testing.T, o opened)
}{
	{"Set and Get", setAndGet},
	{"Set leaves nothing of an older struct", setLeavesNothing},
	{"a nil pointer is a field that is not there", aNilPointer},
	{"SetFields", setFields},
	{"Update", update},
	{"Update loses nothing", updateLosesNothing},
	{"TouchFields", touch},
	{"GetAndTouchFields", getAndTouch},
	{"PersistFields", persist},
	{"Touch", renew},
	{"Delete", remove},
	{"trap: HSET takes a field's TTL away", trapHSet},
	{"trap: HDEL and HSET do not restore it", trapHDel},
	{"trap: a hash whose last field ends is gone", trapLastField},
	{"a key of another kind is left as it was", aKeyOfAnotherKind},
	{"a field that cannot be read", aFieldThatCannotBeRead},
	{"names that are none", namesThatAreNone},
	{"every form", everyForm},
}

func TestBackends(t *testing.T) {
	for _, b := range append(backends.Only("redistest", "redis 8", "cluster"), backends.DoubleCluster) {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			for _, apart := range []bool{false, true} {
				t.Run(map[bool]string{false: "as 8.0", true: "as 7.4"}[apart], func(t *testing.T) {
					for _, x := range behaviours {
						t.Run(x.name, func(t *testing.T) { x.test(t, opened{rdb, apart}) })
					}
				})
			}
		})
	}
}

// Servers without field TTLs say so at the first use, by name, and nothing is written.
func TestUnsupported(t *testing.T) {
	for name, c := range map[string]struct {
		open func(t *testing.T) redis.UniversalClient
		want string
	}{
		"redis 7.0": {func(t *testing.T) redis.UniversalClient {
			return realredis.Start(t, realredis.Options{Flavour: realredis.Redis7}).Client()
		}, "unsupported operation: Redis 7.0."},
		"valkey": {func(t *testing.T) redis.UniversalClient {
			return realredis.Start(t, realredis.Options{Flavour: realredis.Valkey}).Client()
		}, "unsupported operation: Valkey 8."},
		"miniredis": {func(t *testing.T) redis.UniversalClient {
			rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
			t.Cleanup(func() { rdb.Close() })
			return rdb
		}, "unsupported operation: a server that does not tell its version has no field TTLs"},
	} {
		t.Run(name, func(t *testing.T) {
			rdb, ctx := c.open(t), t.Context()
			s := expect.Value(fieldttl.New(ns[session](t, rdb), fieldttl.Options{RedisTimeout: patient}))(t)
			_, get := s.Get(ctx, "a")
			_, getAndTouch := s.GetAndTouchFields(ctx, "a", "ip")
			_, _, ttls := s.TTLs(ctx, "a")
			_, update := s.Update(ctx, "a", func(e fieldttl.Entry[session]) (session, error) { return e.Value, nil }, "ip")
			for i, err := range []error{get, s.Set(ctx, "a", ada), s.SetFields(ctx, "a", ada, "ip"), getAndTouch, ttls,
				s.TouchFields(ctx, "a", "ip"), s.PersistFields(ctx, "a", "ip"), s.Touch(ctx, "a"), s.Delete(ctx, "a"), s.DeleteFields(ctx, "a", "ip"), update} {
				if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("call %d: got error %v, want %q", i, err, c.want)
				}
			}
			if keys := rdb.Keys(ctx, "*").Val(); len(keys) != 0 {
				t.Errorf("written: %q", keys)
			}
		})
	}
}

// gets compares what is there, with the names of the fields that are alive in the order of the struct.
func gets(t *testing.T, s *fieldttl.Store[string, session], key string, want session, alive string) {
	t.Helper()
	e := expect.Value(s.Get(t.Context(), key))(t)
	if got := names(e); e.Value != want || got != alive {
		t.Errorf("got %+v with %q alive, want %+v with %q", e.Value, got, want, alive)
	}
}

func names(e fieldttl.Entry[session]) string {
	var all []string
	for _, name := range []string{"user_id", "ip", "csrf_token"} {
		if e.Alive(name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func absent(t *testing.T, s *fieldttl.Store[string, session], key string) {
	t.Helper()
	if e, err := s.Get(t.Context(), key); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("got %+v, %v, want ErrNotFound", e, err)
	}
}

// left compares TTLs, with a minute's patience.
func left(t *testing.T, s *fieldttl.Store[string, session], key string, wantKey time.Duration, want fields) {
	t.Helper()
	ofKey, got, err := s.TTLs(t.Context(), key)
	expect.OK(t, err)
	near := func(got, want time.Duration) bool { return got <= want && got > want-time.Minute }
	if !near(ofKey, wantKey) || len(got) != len(want) {
		t.Errorf("TTLs are %v and %v, want %v and %v", ofKey, got, wantKey, want)
	}
	for name, ttl := range want {
		if !near(got[name], ttl) {
			t.Errorf("TTLs are %v, want %v of %s", got, ttl, name)
		}
	}
}

type fields = map[string]time.Duration

var whole = fields{"user_id": day, "ip": time.Hour, "csrf_token": 15 * time.Minute}

func setAndGet(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	absent(t, s, "a")
	expect.OK(t, s.Set(ctx, "a", ada))
	gets(t, s, "a", ada, "user_id ip csrf_token")
	left(t, s, "a", day, whole)
	expect.OK(t, s.Set(ctx, "a", session{CSRF: "new"}))
	gets(t, s, "a", session{CSRF: "new"}, "user_id ip csrf_token")
	left(t, s, "a", day, whole)
	absent(t, s, "b")
	if _, _, err := s.TTLs(ctx, "b"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("TTLs of nothing: %v", err)
	}
}

func setLeavesNothing(t *testing.T, o opened) {
	type older struct {
		Theme  string `redis:"theme,ttl=1h"`
		Cart   string `redis:"cart"`
		UserID string `redis:"user_id,ttl=1m"` // which had a TTL once
	}
	before, s := store[older](t, o), store[session](t, o)
	expect.OK(t, before.Set(t.Context(), "a", older{"dark", "7,12", "u1"}))
	expect.OK(t, s.Set(t.Context(), "a", ada))
	gets(t, s, "a", ada, "user_id ip csrf_token")
	left(t, s, "a", day, whole)
	if got := o.rdb.HLen(t.Context(), ns[session](t, o.rdb).Prefix+"a").Val(); got != 3 {
		t.Errorf("the hash has %d fields, want 3", got)
	}
}

func aNilPointer(t *testing.T, o opened) {
	type optional struct {
		Name *string        `redis:"name"`
		Age  *int           `redis:"age,ttl=1m"`
		Seen *time.Duration `redis:"seen"`
	}
	s, ctx := store[optional](t, o), t.Context()
	name, age := "", 7
	expect.OK(t, s.Set(ctx, "a", optional{Name: &name, Age: &age}))
	e := expect.Value(s.Get(ctx, "a"))(t)
	if e.Value.Name == nil || *e.Value.Name != "" || e.Value.Age == nil || *e.Value.Age != 7 || e.Value.Seen != nil || e.Alive("seen") {
		t.Errorf("got %+v", e)
	}
	expect.OK(t, s.Set(ctx, "a", optional{Name: &name}))
	if e := expect.Value(s.Get(ctx, "a"))(t); e.Value.Age != nil || e.Alive("age") || !e.Alive("name") {
		t.Errorf("set as nil: %+v", e)
	}
	expect.OK(t, s.Set(ctx, "a", optional{}))
	if _, err := s.Get(ctx, "a"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("a struct without any field left: %v", err)
	}
}

func setFields(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	full := ns[session](t, o.rdb).Prefix + "a"
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, o.rdb.PExpire(ctx, full, 2*time.Hour).Err())
	expect.OK(t, o.rdb.HExpire(ctx, full, time.Minute, "ip", "csrf_token").Err())
	expect.OK(t, s.SetFields(ctx, "a", session{CSRF: "new", IP: "left out"}, "csrf_token", "csrf_token"))
	gets(t, s, "a", session{1001, "192.168.1.1", "new"}, "user_id ip csrf_token")
	left(t, s, "a", 2*time.Hour, fields{"user_id": 2 * time.Hour, "ip": time.Minute, "csrf_token": 15 * time.Minute})

	expect.OK(t, s.SetFields(ctx, "b", ada, "ip", "user_id"))
	gets(t, s, "b", session{UserID: 1001, IP: "192.168.1.1"}, "user_id ip")
	left(t, s, "b", day, fields{"user_id": day, "ip": time.Hour})
	expect.OK(t, s.SetFields(ctx, "c", ada, "ip"))
	left(t, s, "c", day, fields{"ip": time.Hour})
}

func touch(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	full := ns[session](t, o.rdb).Prefix + "a"
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, o.rdb.HExpire(ctx, full, time.Minute, "ip", "csrf_token").Err())
	expect.OK(t, s.TouchFields(ctx, "a", "csrf_token"))
	left(t, s, "a", day, fields{"user_id": day, "ip": time.Minute, "csrf_token": 15 * time.Minute})
	expect.OK(t, s.TouchFields(ctx, "a", "ip", "csrf_token"))
	left(t, s, "a", day, whole)

	expect.OK(t, s.DeleteFields(ctx, "a", "csrf_token"))
	expect.OK(t, o.rdb.HExpire(ctx, full, time.Minute, "ip").Err())
	if err := s.TouchFields(ctx, "a", "csrf_token", "ip"); !errors.Is(err, mayfly.ErrNotFound) || !strings.Contains(err.Error(), `touch fields of "`+full+`": csrf_token: not found`) {
		t.Errorf("a field that has ended: %v", err)
	}
	left(t, s, "a", day, fields{"user_id": day, "ip": time.Hour})
	if err := s.TouchFields(ctx, "b", "ip"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("a hash that is not there: %v", err)
	}
	absent(t, s, "b")
}

func getAndTouch(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	full := ns[session](t, o.rdb).Prefix + "a"
	expect.OK(t, s.Set(ctx, "a", ada))
	for _, c := range []struct {
		touched []string
		want    fields
	}{
		{[]string{"csrf_token"}, fields{"user_id": day, "ip": time.Minute, "csrf_token": 15 * time.Minute}},
		{[]string{"csrf_token", "ip"}, whole},
	} {
		expect.OK(t, o.rdb.HExpire(ctx, full, time.Minute, "ip", "csrf_token").Err())
		if e := expect.Value(s.GetAndTouchFields(ctx, "a", c.touched...))(t); e.Value != ada || names(e) != "user_id ip csrf_token" {
			t.Errorf("got %+v", e)
		}
		left(t, s, "a", day, c.want)
	}
	expect.OK(t, s.DeleteFields(ctx, "a", "ip"))
	if e := expect.Value(s.GetAndTouchFields(ctx, "a", "ip"))(t); e.Alive("ip") || e.Value.IP != "" || !e.Alive("user_id") {
		t.Errorf("a field that is not there: %+v", e)
	}
	if _, err := s.GetAndTouchFields(ctx, "b", "ip"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("a hash that is not there: %v", err)
	}
}

func persist(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, s.PersistFields(ctx, "a", "ip", "user_id"))
	left(t, s, "a", day, fields{"user_id": day, "ip": day, "csrf_token": 15 * time.Minute})
	expect.OK(t, s.SetFields(ctx, "a", ada, "ip"))
	left(t, s, "a", day, whole)
	expect.OK(t, s.DeleteFields(ctx, "a", "ip"))
	if err := s.PersistFields(ctx, "a", "ip"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("a field that is not there: %v", err)
	}
}

func renew(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, o.rdb.PExpire(ctx, ns[session](t, o.rdb).Prefix+"a", 30*time.Minute).Err())
	left(t, s, "a", 30*time.Minute, fields{"user_id": 30 * time.Minute, "ip": 30 * time.Minute, "csrf_token": 15 * time.Minute})
	expect.OK(t, s.Touch(ctx, "a"))
	left(t, s, "a", day, whole)
	if err := s.Touch(ctx, "b"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("a hash that is not there: %v", err)
	}
}

func remove(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	expect.OK(t, s.Delete(ctx, "a"))
	expect.OK(t, s.DeleteFields(ctx, "a", "ip"))
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, s.DeleteFields(ctx, "a", "ip", "csrf_token"))
	gets(t, s, "a", session{UserID: 1001}, "user_id")
	expect.OK(t, s.DeleteFields(ctx, "a", "user_id"))
	absent(t, s, "a")
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, s.Delete(ctx, "a"))
	absent(t, s, "a")
}

func trapHSet(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, o.rdb.HSet(ctx, ns[session](t, o.rdb).Prefix+"a", "csrf_token", "by hand").Err())
	left(t, s, "a", day, fields{"user_id": day, "ip": time.Hour, "csrf_token": day})
	expect.OK(t, s.SetFields(ctx, "a", ada, "csrf_token"))
	left(t, s, "a", day, whole)
}

func trapHDel(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	full := ns[session](t, o.rdb).Prefix + "a"
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, o.rdb.HDel(ctx, full, "csrf_token").Err())
	expect.OK(t, o.rdb.HSet(ctx, full, "csrf_token", "by hand").Err())
	left(t, s, "a", day, fields{"user_id": day, "ip": time.Hour, "csrf_token": day})
}

func trapLastField(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	full := ns[session](t, o.rdb).Prefix + "a"
	expect.OK(t, s.SetFields(ctx, "a", ada, "ip", "csrf_token"))
	expect.OK(t, o.rdb.HPExpireAt(ctx, full, time.UnixMilli(1), "ip", "csrf_token").Err()) // both end now
	absent(t, s, "a")
	if n := o.rdb.Exists(ctx, full).Val(); n != 0 {
		t.Error("the hash is still there")
	}
}

func aKeyOfAnotherKind(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	for name, call := range map[string]func(key string) error{
		"Get":               func(key string) error { _, err := s.Get(ctx, key); return err },
		"GetAndTouchFields": func(key string) error { _, err := s.GetAndTouchFields(ctx, key, "ip"); return err },
		"Set":               func(key string) error { return s.Set(ctx, key, ada) },
		"SetFields":         func(key string) error { return s.SetFields(ctx, key, ada, "ip") },
		"Update": func(key string) error {
			_, err := s.Update(ctx, key, func(e fieldttl.Entry[session]) (session, error) { return e.Value, nil }, "ip")
			return err
		},
		"TouchFields":   func(key string) error { return s.TouchFields(ctx, key, "ip") },
		"PersistFields": func(key string) error { return s.PersistFields(ctx, key, "ip") },
		"Touch":         func(key string) error { return s.Touch(ctx, key) },
		"TTLs":          func(key string) error { _, _, err := s.TTLs(ctx, key); return err },
		"Delete":        func(key string) error { return s.Delete(ctx, key) },
		"DeleteFields":  func(key string) error { return s.DeleteFields(ctx, key, "ip") },
	} {
		for _, end := range []time.Duration{0, time.Hour} {
			key := name + end.String()
			full := ns[session](t, o.rdb).Prefix + key
			expect.OK(t, o.rdb.Set(ctx, full, "somebody else's", end).Err())
			err := call(key)
			if err == nil || !strings.Contains(err.Error(), "holds a string of somebody else's") || errors.Is(err, mayfly.ErrNotFound) || errors.Is(err, mayfly.ErrUnknownOutcome) {
				t.Errorf("%s: got error %v", name, err)
			}
			left := o.rdb.PTTL(ctx, full).Val()
			if got := o.rdb.Get(ctx, full).Val(); got != "somebody else's" || end == 0 && left != -1 || end > 0 && (left > end || left < end-10*time.Minute) {
				t.Errorf("%s: it is %q now and ends in %v, was %v", name, got, left, end)
			}
		}
	}
}

func aFieldThatCannotBeRead(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	expect.OK(t, s.Set(ctx, "a", ada))
	expect.OK(t, o.rdb.HSet(ctx, ns[session](t, o.rdb).Prefix+"a", "user_id", "ten").Err())
	e, err := s.Get(ctx, "a")
	if err == nil || !strings.Contains(err.Error(), `fieldttl: get "`+ns[session](t, o.rdb).Prefix+`a": field "user_id" cannot be read as int64`) || e.Alive("ip") {
		t.Errorf("got %+v, %v", e, err)
	}
}

func namesThatAreNone(t *testing.T, o opened) {
	s, ctx := store[session](t, o), t.Context()
	expect.OK(t, s.Set(ctx, "a", ada))
	full := ns[session](t, o.rdb).Prefix + "a"
	for want, err := range map[string]error{
		`there is no field "UserID"`:                               s.SetFields(ctx, "a", ada, "UserID"),
		`name at least one field`:                                  s.SetFields(ctx, "a", ada),
		`field "user_id" has no ttl in its tag`:                    s.TouchFields(ctx, "a", "user_id"),
		`delete fields of "` + full + `": name at least one field`: s.DeleteFields(ctx, "a"),
		`persist fields of "` + full + `": there is no field ""`:   s.PersistFields(ctx, "a", ""),
		`the key is empty`:                                         s.Set(ctx, "", ada),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	if expect.Value(s.Get(ctx, "a"))(t).Alive("nosuch") || (fieldttl.Entry[session]{}).Alive("ip") {
		t.Error("what does not exist is alive")
	}
	gets(t, s, "a", ada, "user_id ip csrf_token")
	if n := o.rdb.Exists(ctx, ns[session](t, o.rdb).Prefix).Val(); n != 0 {
		t.Error("the prefix alone is a key now")
	}
}
