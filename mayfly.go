// Package mayfly holds what the packages of this library share. They cache typed values in Redis by go-redis, and every key
// they write has a TTL.
//
// A [Namespace] describes one kind of value: in which Redis it lives, under which prefix, for how long, and how it is
// encoded. The constructors of the other packages take one:
//
//	users := mayfly.Namespace[int64, User]{Redis: rdb, Prefix: "user:", TTL: time.Hour} // rdb: a single server, a cluster, a Sentinel group
//	cache, err := cacheaside.New(users, db.QueryUser, cacheaside.Options{})
//
// Package cacheaside caches what a database answers, httpcache the responses of a handler; sliding, navsession and fieldttl
// keep sessions, visits and structs whose only copy is in Redis. [OpenLocal] adds copies in this process.
//
// A wrong option is an error of the constructor that names the field and the value. What an operator should see is an
// [Event] to the namespace's [Observer]; the library itself never logs, but [Slog] is an Observer that does.
package mayfly

// Must returns v, and panics if err is not nil. It is for values made from literals, where an error is a mistake in
// the program, as with regexp.MustCompile:
//
//	var users = mayfly.Must(cacheaside.New(ns, load, cacheaside.Options{}))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
