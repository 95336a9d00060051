package ttlaudit

import (
	"cmp"
	"encoding/json"
	"sort"
	"strings"
	"time"
)

// Report is the result of an audit. Its names in JSON are stable; [Report.WriteText] is for people.
type Report struct {
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"-"` // took_seconds

	// Complete says that every server was walked to its end, or to its share of Options.Keys.
	Complete bool `json:"complete"`

	// Servers says how far each server was covered.
	Servers []struct {
		Addr    string `json:"addr"`
		Keys    int64  `json:"keys"`            // keys looked at
		Of      int64  `json:"of"`              // keys there were at the beginning; 0: not known
		Covered bool   `json:"covered"`         // to its end, or its share of Options.Keys
		Error   string `json:"error,omitempty"` // why it was not covered
	} `json:"servers"`

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

	// Patterns are groups of keys that differ only in their IDs, those with the most keys without TTL first. In a name "*" stands for an ID
	// or a name, and "**" for any number of such parts. The same names select the keys of a [Plan].
	Patterns []struct {
		Name       string    `json:"pattern"`
		Keys       int64     `json:"keys"`
		NoTTL      int64     `json:"no_ttl"`
		TooLong    int64     `json:"too_long"`
		Bytes      *Estimate `json:"bytes,omitempty"`
		NoTTLBytes *Estimate `json:"no_ttl_bytes,omitempty"`
		Example    string    `json:"example_no_ttl,omitempty"`
	} `json:"patterns"`

	Types map[string]int64 `json:"types"`

	// Largest are the largest keys without TTL, among those whose size was asked for.
	Largest []struct {
		Key   string `json:"key"`
		Type  string `json:"type"`
		Bytes int64  `json:"bytes"`
	} `json:"largest_no_ttl"`

	// TTLs groups keys by their remaining TTL, the shortest first: each entry counts those with at most UpTo, and more than the entry before.
	TTLs []struct {
		UpTo time.Duration // zero, in the last entry: any
		Keys int64
	} `json:"-"` // ttls, with up_to_seconds

	// Hashes counts some fields of the hashes whose size was asked for. A field's TTL is not the key's: a hash whose fields all expire
	// is gone with the last of them, and still counts as a key without TTL.
	Hashes struct {
		Looked      int64  `json:"looked_at"`
		Fields      int64  `json:"fields"`
		WithTTL     int64  `json:"fields_with_ttl"`
		EndByFields int64  `json:"end_by_fields"`     // hashes without a TTL whose fields looked at all have one
		Unknown     string `json:"unknown,omitempty"` // why fields could not be asked about
	} `json:"hashes"`
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
	r.Took, r.Complete = a.took(), true
	empty(&r.Patterns)
	var of int64
	partly := false
	for _, s := range a.Servers {
		s.Covered = s.Done && s.Error == ""
		to := added(&r.Servers)
		to.Addr, to.Keys, to.Of, to.Covered, to.Error = s.Addr, s.Keys, s.Of, s.Covered, s.Error
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
		p := added(&r.Patterns)
		p.Name, p.Keys, p.NoTTL, p.TooLong, p.Example = name, t.Keys, t.NoTTL, t.TooLong, t.Example
		if a.opt.Sizes > 0 {
			s, v := t.All.total(t.Keys, t.All)
			es, ev := t.Endless.total(t.NoTTL, t.All)
			p.Bytes, p.NoTTLBytes = normal(s, v), normal(es, ev)
			sum, variance, endless, endlessVariance = sum+s, variance+v, endless+es, endlessVariance+ev
		}
	})
	if a.opt.Sizes > 0 {
		r.Bytes, r.NoTTLBytes = normal(sum, variance), normal(endless, endlessVariance)
	}
	sort.Slice(r.Patterns, func(i, j int) bool {
		p, q := r.Patterns[i], r.Patterns[j]
		return cmp.Or(cmp.Compare(q.NoTTL, p.NoTTL), cmp.Compare(q.Keys, p.Keys), strings.Compare(p.Name, q.Name)) < 0
	})
}

// added appends a zero element to a list of a report and returns it. It spares the types of these lists a name.
func added[T any](list *[]T) *T {
	var zero T
	*list = append(*list, zero)
	return &(*list)[len(*list)-1]
}

// empty makes list empty, and [] in JSON.
func empty[T any](list *[]T) { *list = []T{} }
