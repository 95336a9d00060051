package promises

import (
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/ttlaudit"
)

func ttlauditRows() []row {
	return []row{{name: "ttlaudit/Fix, then the owner takes the TTL away", endless: true, open: func(w world) call {
		key := w.prefix + k
		w.must(w.direct.Set(w.ctx, key, "before", 0).Err())
		return call{
			about: key,
			do: func() error {
				plan := ttlaudit.Plan{Give: []ttlaudit.Give{{Pattern: w.prefix + "*", TTL: time.Hour}}, Apply: true, MaxRate: -1}
				report, err := ttlaudit.Fix(w.ctx, w.through, plan)
				if err == nil && (report.Gives[0].Given != 1 || report.Gives[0].Had != 0) {
					w.t.Errorf("it gave a TTL to the only key, and reports %+v", report.Gives[0])
				}
				return err
			},
			done: func() int {
				if ttl := w.direct.PTTL(w.ctx, key).Val(); ttl > 0 {
					return 1
				}
				return 0
			},
			later: func() { w.must(w.direct.Persist(w.ctx, key).Err()) },
		}
	}}, {name: "ttlaudit/Fix, then a key is made anew", endless: true, open: func(w world) call {
		key := w.prefix + k
		w.must(w.direct.Set(w.ctx, key, "before", 0).Err())
		n := 0
		return call{
			about: key,
			do: func() error {
				plan := ttlaudit.Plan{Give: []ttlaudit.Give{{Pattern: w.prefix + "*", TTL: time.Hour}}, Apply: true, MaxRate: -1}
				_, err := ttlaudit.Fix(w.ctx, w.through, plan)
				return err
			},
			later: func() { n++; w.must(w.direct.Set(w.ctx, key, fmt.Sprint("another ", n), 0).Err()) },
		}
	}}}
}
