package promises

import (
	"errors"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/navsession"
)

// foreignRows write a key of somebody else's, which is refused. The key gets the end back that it had; that it gets once, and not after
// its owner has chosen another.
func foreignRows() (all []row) {
	for name, do := range map[string]func(w world) error{
		"navsession/Record": func(w world) error {
			ns := mayfly.Namespace[string, string]{Name: "visits", Redis: w.through, Prefix: w.prefix, TTL: time.Minute}
			return mayfly.Must(navsession.New(ns, navsession.Options{Pages: 20, RedisTimeout: busy})).Record(w.ctx, k, "mine")
		},
		"fieldttl/Set": func(w world) error {
			ns := mayfly.Namespace[string, visit]{Name: "visits", Redis: w.through, Prefix: w.prefix, TTL: time.Minute}
			s := mayfly.Must(fieldttl.New(ns, fieldttl.Options{RedisTimeout: busy}))
			if _, err := s.Get(w.ctx, "none"); !errors.Is(err, mayfly.ErrNotFound) {
				return err
			}
			return s.Set(w.ctx, k, visit{"mine", "1.1.1.1"})
		},
	} {
		all = append(all, row{name: name + " of a key of somebody else's, then its owner's EXPIRE", skip: 1, open: func(w world) call {
			w.must(w.direct.Set(w.ctx, w.prefix+k, "theirs", time.Hour).Err())
			n := time.Duration(2)
			return call{
				about: w.prefix + k,
				do: func() error {
					err := do(w)
					if err != nil && strings.Contains(err.Error(), "WRONGTYPE") && !strings.Contains(err.Error(), "could not be restored") {
						return nil // as it should
					}
					return err
				},
				done: func() int {
					if left := w.direct.PTTL(w.ctx, w.prefix+k).Val(); left > 30*time.Minute {
						return 1
					}
					return 0
				},
				later: func() { n++; w.must(w.direct.Expire(w.ctx, w.prefix+k, n*time.Hour).Err()) },
			}
		}})
	}
	return all
}
