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

	Patterns []Pattern        `json:"patterns"` // those with the most keys without TTL first
	Types    map[string]int64 `json:"types"`
	Largest  []LargeKey       `json:"largest_no_ttl"` // among those whose size was asked for

	// TTLs are the times left, the shortest first: how many keys have at most UpTo, and more than that of the entry before.
	TTLs []struct {
		UpTo time.Duration // zero, in the last entry: any
		Keys int64
	} `json:"-"` // ttls, with up_to_seconds

	// Hashes is what some fields of the hashes said whose size was asked for. A field's TTL is not the key's: a hash all of
	// whose fields end is gone with the last of them, and still counts as a key without TTL.
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

// LargeKey is one of the largest keys without TTL.
type LargeKey struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// MarshalJSON writes durations as seconds.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	type upTo struct {
		Seconds float64 `json:"up_to_seconds,omitempty"`
		Keys    int64   `json:"keys"`
	}
	ttls := make([]upTo, len(r.TTLs))
	for i, t := range r.TTLs {
		ttls[i] = upTo{t.UpTo.Seconds(), t.Keys}
	}
	return json.Marshal(struct {
		plain
		Took    float64 `json:"took_seconds"`
		Longest float64 `json:"too_long_seconds"`
		TTLs    []upTo  `json:"ttls"`
	}{plain(r), r.Took.Seconds(), r.Longest.Seconds(), ttls})
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
