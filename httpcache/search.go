package httpcache

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// With Options.NoVarySearch, a record beside the URLs of a path holds the rule that says which parameters of its queries matter. An answer of the
// path has given that rule by No-Vary-Search. An answer to which a rule applies is stored under the path, the record's generation, and the part
// of the query that matters:
//
//	<path> ?                        the record: a rule; or that there is none yet
// <path> ?<generation><query>     shared by the URLs that are equivalent by the rule, in place of their own keys
//
// The rule only locates an answer. Whether the answer may be reused is decided for each request by what the answer itself says, for stored
// answers and for waiters alike. A request that finds an answer for another query continues with the key of its own URL.
//
// An answer with a rule is stored nowhere else, so a purge finds it by any equivalent URL: it removes what is stored under the URL's own
// key and what the path's rule leads to. The answer that brings the first rule was requested before there was a rule. It is stored only
// if the record of its path, which existed before the handler was called, still exists: a purge of any URL of the path removes that
// record. A path has one rule at a time, the latest, and changes it at most once in SharedPass.

// searching is the record of a path.
type searching struct {
	generation string // part of the keys; "": there is no rule yet
	rule       rfc9111.Search
}

// unruled is how long the record of a path without a rule is kept.
const unruled = time.Minute

// searched is a response's No-Vary-Search rule, with the query that the response was made for.
type searched struct {
	rule  rfc9111.Search
	query string // with its "?", or empty
	same  string // the part of the query that matters
}

func newSearched(rule rfc9111.Search, query string) *searched {
	return &searched{rule, query, rule.Same(query)}
}

// fits reports whether a response may answer a request with this query. A response without a rule is for the URL whose key it is stored under.
func (s *searched) fits(query string) bool {
	return s == nil || s.query == query || s.rule.Same(query) == s.same
}

// queryAt returns the index at which the query of a key begins.
func (c *Cache) queryAt(key string) int {
	if i := strings.IndexByte(key[len(c.prefix):], '?'); i >= 0 {
		return len(c.prefix) + i
	}
	return len(key)
}

// pathKey returns the key of the record of a path, given the key of a URL with that path.
func (c *Cache) pathKey(key string) string { return key[:c.queryAt(key)] + " ?" }

// maxSame bounds the length of a query that is put into a key unhashed.
const maxSame = 200

// under returns the key to which a record leads the URL with the given key. Without a rule that is the given key.
func (s *searching) under(pathKey, query, key string) string {
	if s == nil || s.generation == "" {
		return key
	}
	same := s.rule.Same(query)
	if len(same) > maxSame {
		sum := sha256.Sum256([]byte(same))
		same = "#" + hex.EncodeToString(sum[:])
	}
	return pathKey + s.generation + same
}

// followAtHand is follow with only this process's copies. ok is false if the copies do not suffice.
func (c *Cache) followAtHand(key []byte, says *rfc9111.Selectors) (to []byte, ok bool) {
	path := c.pathKey(string(key))
	at := c.local.AtFull([]byte(path))
	if at == nil {
		return nil, false
	}
	if at.search == nil {
		return key, true
	}
	return []byte(at.search.under(path, says.Query, string(key))), true
}

// follow finds the record of a path, and leads s to where the path's rule points.
func (c *Cache) follow(ctx context.Context, s *sight, says *rfc9111.Selectors) (local bool) {
	s.path = c.pathKey(s.key)
	if c.unremoved.Has(s.path) {
		s.unasked = errUnremoved
		return false
	}
	if at := c.local.AtFull([]byte(s.path)); at != nil {
		s.search, local = *at, true
	} else {
		ticket := c.local.Begin(s.path)
		f, err := c.guard.Look(ctx, s.path, false)
		if err != nil {
			s.unasked = err
			return false
		}
		if s.search = decode(f); s.search.search != nil {
			c.keepCopy(s.path, ticket, s.search, time.Now().UnixMilli())
		} else if f.State == lease.Absent {
			c.local.Insert(s.path, ticket, s.search, 0, c.ns.TTL)
		}
	}
	s.key = s.search.search.under(s.path, says.Query, s.key)
	s.slot = s.key
	return local
}

// prepare gives the path of s a record, if it has none, before the handler is called. If the record is gone when the answer arrives, something
// under the path was purged in the meantime.
func (c *Cache) prepare(ctx context.Context, s *sight) {
	if s.path == "" || s.search.search != nil {
		return
	}
	a := c.guard.Claim(ctx, s.path, s.search.found)
	if a.Claim == nil || a.Err != nil { // another process does it, or Redis does not answer: no rule is learned this time
		c.release(ctx, a.Claim)
		return
	}
	it, ttl := item{search: &searching{}}, min(unruled, c.ns.TTL)
	rec, err := it.encode(a.Claim.ID(), ttl)
	if err != nil {
		return
	}
	if stored, err := a.Claim.Fill(ctx, rec, ttl); !stored || err != nil {
		c.release(ctx, a.Claim)
		return
	}
	c.local.Changed(ctx, s.path)
	it.found = written(rec)
	s.search = it
}

// ledElsewhere reports whether r must not be stored in the place for which s was found. If it must not, it stores r where it belongs, if allowed.
func (c *Cache) ledElsewhere(ctx context.Context, s sight, r *response, ttl time.Duration) (elsewhere, stored bool, err error) {
	if r.search == nil || r.search.rule.Counts() {
		return false, false, nil
	}
	seen := s.search.search
	if seen != nil && seen.generation != "" && seen.rule.Equal(r.search.rule) && s.key != s.own {
		c.prolong(ctx, s)
		return false, false, nil
	}
	if seen == nil || seen.rule.Equal(r.search.rule) && seen.generation != "" {
		return true, false, nil
	}
	next := newSearching(r.search.rule)
	if seen.generation != "" { // an answer requested under another rule may have been purged by a URL that is equivalent under this one
		written := s.search.ends - c.ns.TTL.Milliseconds()
		if time.Now().UnixMilli()-written >= c.opt.SharedPass.Milliseconds() {
			_, err = c.write(ctx, s.path, s.search.found, nil, item{search: next}, c.ns.TTL)
			c.local.Changed(ctx, s.path)
		}
		return true, false, err
	}
	key := next.under(s.path, r.search.query, "")
	if err := c.putFirst(ctx, key, r, ttl); err != nil {
		return true, false, err
	}
	stored, err = c.write(ctx, s.path, s.search.found, nil, item{search: next}, c.ns.TTL)
	c.local.Changed(ctx, s.path)
	if !stored && err == nil {
		err = c.remove(ctx, key)
	}
	return true, stored, err
}

func newSearching(rule rfc9111.Search) *searching {
	var generation [8]byte
	rand.Read(generation[:]) // never fails
	return &searching{hex.EncodeToString(generation[:]), rule}
}

// putFirst stores r under a key that nothing leads to yet.
func (c *Cache) putFirst(ctx context.Context, key string, r *response, ttl time.Duration) error {
	it := item{response: r}
	if len(r.fields) > 0 {
		index, err := c.putVariant(ctx, key, r, ttl)
		if err != nil {
			return err
		}
		it, ttl = item{index: index}, c.ns.TTL
	}
	rec, done, err := c.encode(it, record.NewID(), ttl)
	if err != nil {
		return err
	}
	defer done()
	return c.guard.Set(ctx, []lease.Value{{Key: key, Bytes: rec, TTL: ttl}})[0]
}

// prolong rewrites the record of a path in use before it expires. If that fails, the handler is called once more for the answers it leads to.
func (c *Cache) prolong(ctx context.Context, s sight) {
	if left := s.search.ends - time.Now().UnixMilli(); left < c.ns.TTL.Milliseconds()/2 {
		c.write(ctx, s.path, s.search.found, nil, item{search: s.search.search}, c.ns.TTL)
		c.local.Changed(ctx, s.path)
	}
}

// purgePaths prepares the removal of URLs with the given keys. It returns the keys to which the rules of their paths lead, which must be
// removed too. It also removes records without a rule, so that loads that run under those establish none.
func (c *Cache) purgePaths(ctx context.Context, keys []string) (more []string, err error) {
	if !c.opt.NoVarySearch {
		return nil, nil
	}
	var paths, unruled []string
	for _, key := range keys {
		paths = append(paths, c.pathKey(key))
	}
	for i, a := range c.guard.LookMany(ctx, paths, false) {
		switch it := decode(a.Found); {
		case a.Err != nil:
			return nil, a.Err
		case it.search != nil && it.search.generation != "":
			more = append(more, it.search.under(paths[i], keys[i][c.queryAt(keys[i]):], keys[i]))
		case a.State != lease.Absent:
			unruled = append(unruled, paths[i])
		}
	}
	if len(unruled) == 0 {
		return more, nil
	}
	return more, c.remove(ctx, unruled...)
}
