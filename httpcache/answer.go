package httpcache

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// answer writes a stored response to the client of r: the whole response, the part that a range asks for, or a 304. It reports whether the writer is done
// with the body. A writer that failed may not be: HTTP/2 may still send a part of it to a client that has left.
func (c *Cache) answer(w http.ResponseWriter, r *http.Request, resp *response, now time.Time, s rfc9111.CacheStatus) (done bool) {
	p := &resp.policy
	age := p.Age(now)
	s.TTL, s.HasTTL = p.Lifetime-age, true
	into := w.Header()
	resp.copyHeader(into, int64(age/time.Second), c.say(s))

	status, body := resp.status, resp.body
	if status == http.StatusOK && (rfc9111.Conditional(r.Header) || r.Header["Range"] != nil) {
		status, body = resp.part(r, into)
	}
	for _, f := range resp.trailer { // announced first: otherwise net/http would send a Content-Length and no trailers
		if strings.HasPrefix(f.name, http.TrailerPrefix) {
			into[f.name] = slices.Clone(f.values)
		}
	}
	w.WriteHeader(status)
	done = true
	if r.Method != http.MethodHead && len(body) > 0 { // a 304 has none
		n, err := w.Write(body) // an error means that the client has left
		done = n == len(body) && err == nil
	}
	for _, f := range resp.trailer { // the trailers that the header announces
		if !strings.HasPrefix(f.name, http.TrailerPrefix) {
			into[f.name] = slices.Clone(f.values)
		}
	}
	return done
}

// copyHeader copies the stored header to h. Handlers around the cache may change the copied values.
func (r *response) copyHeader(h http.Header, age int64, status string) {
	n := 2
	for i := range r.header {
		n += len(r.header[i].values)
	}
	room := make([]string, 0, n) // one allocation for all values
	for i := range r.header {
		f := &r.header[i]
		start := len(room)
		if room = append(room, f.values...); f.name == "Cache-Status" { // of a cache nearer to the origin
			room = append(room, status)
			status = ""
		}
		if own := room[start:len(room):len(room)]; f.added {
			h[f.name] = append(slices.Clip(h[f.name]), own...)
		} else {
			h[f.name] = own
		}
	}
	start := len(room)
	room = append(room, strconv.FormatInt(age, 10))
	h["Age"] = room[start : start+1 : start+1]
	if status != "" {
		room = append(room, status)
		h["Cache-Status"] = room[start+1 : start+2 : start+2]
	}
}

// part evaluates the conditions of a request, and then its range, for a stored 200 (RFC 9110, section 13.2.2). It changes h, the header
// that the client gets.
func (r *response) part(req *http.Request, h http.Header) (status int, body []byte) {
	stored, received := headerOf(r.header), r.policy.Received
	if rfc9111.NotModified(req.Header, stored, received) {
		rfc9111.StripBody(h)
		return http.StatusNotModified, nil
	}
	if req.Method != http.MethodGet {
		return http.StatusOK, r.body
	}
	size := int64(len(r.body))
	switch span, part := rfc9111.Range(req.Header, stored, size, received); part {
	case rfc9111.Single:
		h.Set("Content-Range", span.ContentRange(size))
		h.Set("Content-Length", strconv.FormatInt(span.Last-span.First+1, 10))
		return http.StatusPartialContent, r.body[span.First : span.Last+1]
	case rfc9111.Unsatisfiable:
		rfc9111.StripBody(h)
		h.Set("Content-Range", rfc9111.Unsatisfied(size))
		return http.StatusRequestedRangeNotSatisfiable, nil
	}
	return http.StatusOK, r.body
}

// said is the part of a header that the handler itself has set.
type said struct {
	header http.Header
	added  map[string]bool // the fields that the handler added to values of handlers around the cache, which will set theirs again
}

// saidIn returns the fields of a header to store: all except those set by handlers around the cache.
func saidIn(header, outer http.Header) said {
	s := said{header: header}
	if len(outer) == 0 {
		return s
	}
	s.header = make(http.Header, len(header))
	for name, values := range header {
		before, own := outer[name], values
		if n := len(before); n > 0 && len(values) >= n && slices.Equal(before, values[:n]) {
			if own = values[n:]; len(own) == 0 {
				continue
			}
			if s.added == nil {
				s.added = make(map[string]bool)
			}
			s.added[http.CanonicalHeaderKey(name)] = true
		}
		s.header[name] = own
	}
	return s
}

// tagsOf returns the tags that the response to r has in Options.TagFields, and its groups, each once.
func (c *Cache) tagsOf(r *http.Request, h http.Header) (tags []string) {
	if len(c.opt.TagFields) > 0 && h["Cache-Groups"] != nil {
		key, _ := c.keys.Key(r)
		tags = rfc9111.Groups(key, h)
	}
	for _, name := range c.opt.TagFields {
		for _, line := range h[http.CanonicalHeaderKey(name)] {
			tags = append(tags, strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == ',' || c == '\t' })...)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}
