package httpcache

import (
	"maps"
	"net/http"
	"slices"
)

// change is what a writer around the cache did to a field of the header when an interim answer passed it.
type change struct {
	name   string
	was    []string // as the handler had sent it
	values []string // what the writer made of it, or, with added, put after it; nil: it removed the field
	added  bool
}

// interim passes a 1xx answer on, and then restores the client's header. Many writers around the cache set their fields, such as a
// session's cookie, once, when the first answer passes them. What they did is kept for the final answer. It is not stored.
func (c *capture) interim(status int) {
	into := c.w.Header()
	before := into.Clone()
	maps.Copy(into, c.header)
	sent := into.Clone()
	c.w.WriteHeader(status)
	for name, values := range into {
		switch was := sent[name]; {
		case slices.Equal(values, was):
		case len(was) > 0 && begins(values, was):
			c.outer = append(c.outer, change{name, was, slices.Clone(values[len(was):]), true})
		default:
			c.outer = append(c.outer, change{name, was, slices.Clone(values), false})
		}
	}
	for name, was := range sent {
		if _, kept := into[name]; !kept {
			c.outer = append(c.outer, change{name: name, was: was})
		}
	}
	clear(into)
	maps.Copy(into, before)
}

func begins(values, with []string) bool {
	return len(values) >= len(with) && slices.Equal(values[:len(with)], with)
}

// fillIn makes into the header to be sent: the handler's, with what writers around the cache have changed.
func (c *capture) fillIn(into http.Header) {
	clear(into)
	maps.Copy(into, c.header)
	apply(c.outer, into, false)
}

// apply makes changes to a header. A field that the handler has set anew after the writer did is the handler's, unless fields of this name
// are lists. With over the header is not from the handler that sent the interim answer, and the writers have the last word.
func apply(outer []change, into http.Header, over bool) {
	for _, o := range outer {
		now := into[o.name]
		isList := o.name == "Set-Cookie" || o.name == "Vary" || o.name == "Cache-Control"
		same := over || slices.Equal(now, o.was)
		switch {
		case o.added, isList && len(o.was) == 0:
			into[o.name] = append(slices.Clip(now), o.values...)
		case same && o.values == nil:
			delete(into, o.name)
		case same:
			into[o.name] = slices.Clone(o.values)
		case len(o.was) > 0 && begins(now, o.was): // the handler has added to it
			into[o.name] = append(slices.Clone(o.values), now[len(o.was):]...)
		case isList:
			into[o.name] = append(slices.Clip(now), o.values...)
		}
	}
}

// unsent reports whether the handler has sent no final answer to the client, so that another may follow.
func (c *capture) unsent() bool {
	return (c.mode == undecided || c.mode == swallow) && !c.left && !c.hijacked
}

// next returns the writer for the answer that takes the place of the handler's.
func (c *capture) next() http.ResponseWriter {
	if len(c.outer) == 0 || !c.unsent() {
		return c.w
	}
	return &successor{ResponseWriter: c.w, outer: c.outer}
}

// successor is the writer of a request whose handler has sent interim answers and no final one. The final answer gets what writers around the
// cache changed in those.
type successor struct {
	http.ResponseWriter
	outer []change
	begun bool
}

func (s *successor) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *successor) WriteHeader(status int) {
	if !s.begun && status >= 200 {
		s.begun = true
		apply(s.outer, s.Header(), true)
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *successor) Write(b []byte) (int, error) {
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	return s.ResponseWriter.Write(b)
}
