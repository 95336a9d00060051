package cacheaside

// near is the local tier as a cache sees it. What it must keep to:
//
//	t := Begin(k)          before the read of Redis is sent
//	Insert(k, t, s)        after it: refused if k changed in between, by anyone. Never after a write
//	Drop(k)                before a write is sent and again after its reply
//
// so that a value is inserted only if it is not older than the last change this process has heard of.
type near[V any] interface {
	Get(key string) (s sight[V], ok bool)
	Begin(key string) (ticket uint64)
	Insert(key string, ticket uint64, s sight[V])
	Drop(keys ...string)
	Flush()
}
