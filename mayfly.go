// Package mayfly is the vocabulary of a family of typed caching helpers over Redis in which nothing can be stored
// without an end.
//
// A [Namespace] says once what a kind of cached value is: where it lives, under which prefix, how a key is written,
// how long a value lives, how its bytes look. The patterns are made from it, each in a package of its own:
//
//	users := mayfly.Namespace[int64, User]{
//		Name:   "users",
//		Redis:  rdb, // any redis.UniversalClient: single, cluster, sentinel
//		Prefix: "cache:user:",
//		TTL:    mayfly.Medium,
//		Jitter: jitter.Default,
//	}
//
// What goes wrong is an error that names the field and the value; what an operator should see is an [Event].
// The library never logs.
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
