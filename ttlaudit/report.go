package ttlaudit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Report is the result of an audit. Its names in JSON are stable; [Report.WriteText] is for people.
type Report struct {
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"-"` // took_seconds

	// Complete says that every server was walked to its end, or to its share of Options.Keys.
	Complete bool           `json:"complete"`
	Servers  []ServerReport `json:"servers"`

	// Resharded says that slots moved meanwhile: keys may have been missed, or counted twice.
	Resharded bool `json:"resharded,omitempty"`

	Match    string        `json:"match,omitempty"`
	Keys     int64         `json:"keys"`     // keys looked at that existed
	NoTTL    int64         `json:"no_ttl"`   // those without a TTL
	TooLong  int64         `json:"too_long"` // those whose remaining TTL is longer than Longest
	Longest  time.Duration `json:"-"`        // too_long_seconds
	Vanished int64         `json:"vanished"` // between SCAN and PTTL
	Moved    int64         `json:"moved"`    // to another master in between

	// Estimated is the estimate for all keys, if the audit looked at only some; else it is zero.
	Estimated struct {
		Keys    int64    `json:"keys"` // by DBSIZE
		NoTTL   Estimate `json:"no_ttl"`
		TooLong Estimate `json:"too_long"`
	} `json:"estimated,omitzero"`

	// Bytes and NoTTLBytes are the memory of the keys looked at, estimated from a sample; nil if no sizes were asked for.
	Bytes      *Estimate `json:"bytes,omitempty"`
	NoTTLBytes *Estimate `json:"no_ttl_bytes,omitempty"`

	Patterns []Pattern        `json:"patterns"` // those with the most keys without a TTL first
	TTLs     []TTLs           `json:"ttls"`     // remaining TTLs, shortest first
	Types    map[string]int64 `json:"types"`
	Largest  []LargeKey       `json:"largest_no_ttl"` // among those whose size was asked for

	// Hashes says what some fields reported, of the hashes whose size was asked for. A field's TTL is not the key's: a hash whose fields
	// all expire is gone with the last of them, but still counts as a key without a TTL.
	Hashes struct {
		Looked      int64  `json:"looked_at"`
		Fields      int64  `json:"fields"`
		WithTTL     int64  `json:"fields_with_ttl"`
		EndByFields int64  `json:"end_by_fields"`     // hashes without a TTL whose fields looked at all have one
		Unknown     string `json:"unknown,omitempty"` // why fields could not be asked about
	} `json:"hashes"`
}

// ServerReport says how far a server was covered.
type ServerReport struct {
	Addr    string `json:"addr"`
	Keys    int64  `json:"keys"`            // keys looked at
	Of      int64  `json:"of"`              // keys there were at the beginning; 0: not known
	Covered bool   `json:"covered"`         // to its end, or its share of Options.Keys
	Error   string `json:"error,omitempty"` // why it was not covered
}

// Pattern is a group of keys that differ only in their IDs. In its name "*" stands for an ID or a name, and "**" for any number of such
// parts. The same names select the keys of a [Plan].
type Pattern struct {
	Name       string    `json:"pattern"`
	Keys       int64     `json:"keys"`
	NoTTL      int64     `json:"no_ttl"`
	TooLong    int64     `json:"too_long"`
	Bytes      *Estimate `json:"bytes,omitempty"`
	NoTTLBytes *Estimate `json:"no_ttl_bytes,omitempty"`
	Example    string    `json:"example_no_ttl,omitempty"`
}

// TTLs counts the keys whose remaining TTL is at most UpTo and above the UpTo of the entry before.
type TTLs struct {
	UpTo time.Duration `json:"-"` // up_to_seconds; zero: any
	Keys int64         `json:"keys"`
}

// LargeKey is one of the largest keys without a TTL.
type LargeKey struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// MarshalJSON writes durations as seconds.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	return json.Marshal(struct {
		plain
		Took    float64 `json:"took_seconds"`
		Longest float64 `json:"too_long_seconds"`
	}{plain(r), r.Took.Seconds(), r.Longest.Seconds()})
}

// MarshalJSON writes UpTo as seconds, or omits it.
func (t TTLs) MarshalJSON() ([]byte, error) {
	type plain TTLs
	return json.Marshal(struct {
		UpTo float64 `json:"up_to_seconds,omitempty"`
		plain
	}{t.UpTo.Seconds(), plain(t)})
}

// report builds the report from what was counted.
func (a *audit) report() *Report {
	r := a.Report
	r.Took, r.Complete, r.Patterns = a.took(), true, []Pattern{}
	var of int64
	partly := false
	for _, s := range a.Servers {
		s.Covered = s.Done && s.Error == ""
		r.Servers = append(r.Servers, s.ServerReport)
		r.Complete = r.Complete && s.Covered
		of += max(s.Of, s.Keys)
		partly = partly || s.Quota > 0
	}
	if partly {
		r.Estimated.Keys, r.Estimated.NoTTL, r.Estimated.TooLong = of, proportion(a.NoTTL, a.Keys, of), proportion(a.TooLong, a.Keys, of)
	}
	a.patterns(&r)
	return &r
}

// patterns adds the patterns, and the sizes of all keys.
func (a *audit) patterns(r *Report) {
	var sum, variance, endless, endlessVariance float64
	a.Forest.Root.each("", func(name string, t *tally) {
		if t.Keys == 0 {
			return
		}
		p := Pattern{Name: name, Keys: t.Keys, NoTTL: t.NoTTL, TooLong: t.TooLong, Example: t.Example}
		if a.opt.Sizes > 0 {
			s, v := t.All.total(t.Keys, t.All)
			es, ev := t.Endless.total(t.NoTTL, t.All)
			p.Bytes, p.NoTTLBytes = normal(s, v), normal(es, ev)
			sum, variance, endless, endlessVariance = sum+s, variance+v, endless+es, endlessVariance+ev
		}
		r.Patterns = append(r.Patterns, p)
	})
	if a.opt.Sizes > 0 {
		r.Bytes, r.NoTTLBytes = normal(sum, variance), normal(endless, endlessVariance)
	}
	slices.SortFunc(r.Patterns, func(p, q Pattern) int {
		return cmp.Or(cmp.Compare(q.NoTTL, p.NoTTL), cmp.Compare(q.Keys, p.Keys), strings.Compare(p.Name, q.Name))
	})
}
