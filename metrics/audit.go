package metrics

import (
	"strings"
	"time"
)

// ObserveAudit shows the results of an audit under a name for its server or servers: how many keys were looked at, and how many of them had
// no TTL. A program that runs [ttlaudit.Run] regularly passes the report's figures here.
//
// [ttlaudit.Run]: https://pkg.go.dev/github.com/mayflycache/mayfly/ttlaudit#Run
func (m *Observer) ObserveAudit(server string, keys, noTTL int64) {
	server = m.bounded(server)
	server = strings.ToValidUTF8(server, "?")
	m.audited.WithLabelValues(server).Set(float64(keys))
	m.endless.WithLabelValues(server).Set(float64(noTTL))
	m.auditedAt.WithLabelValues(server).Set(float64(time.Now().Unix()))
}
