package fieldttl

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// A plan says how a struct maps to a hash. It is made once.
type plan struct {
	fields []field
	byName map[string]int
	every  []int // all fields
	names  []any // their names, as arguments of commands
}

// A field is a field of both the struct and the hash.
type field struct {
	name  string
	index []int // for reflect.Value.FieldByIndex
	ttl   time.Duration
	form  form
}

const maxFields = 256 // the number of bits of alive

// planOf reads the tags of T. Its errors name the field and the tag.
func planOf(t reflect.Type) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the values must be structs whose fields have redis tags, got %v", t)
	}
	p := &plan{byName: map[string]int{}}
	err := p.add(t, t, nil)
	switch {
	case err != nil:
		return nil, err
	case len(p.fields) == 0:
		return nil, fmt.Errorf("%v has no field with a redis tag", t)
	case len(p.fields) > maxFields:
		return nil, fmt.Errorf("%v has %d fields: %d at most", t, len(p.fields), maxFields)
	}
	return p, nil
}

// add adds the fields of t, which is root or is embedded in root at index.
func (p *plan) add(root, t reflect.Type, index []int) error {
	var wrong []error
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("redis")
		fail := func(format string, args ...any) {
			where := fmt.Sprintf("field %v.%s", root, f.Name)
			if tagged {
				where += fmt.Sprintf(" `redis:%q`", tag)
			}
			wrong = append(wrong, fmt.Errorf(where+": "+format, args...))
		}
		at := append(slices.Clone(index), i)
		switch {
		case tag == "-":
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct && !isText(f.Type):
			wrong = append(wrong, p.add(root, f.Type, at))
		case !f.IsExported() && f.Anonymous && hasTags(f.Type, nil):
			fail("it is embedded and its fields have redis tags, but nobody can set it: embed the struct itself, not a pointer to it, and one without a text of its own")
		case !f.IsExported() && tagged:
			fail("it is not exported, so nobody can set it: export it or take the tag away")
		case !f.IsExported():
		case !tagged:
			fail("it has no redis tag: give it a name, as in `redis:\"%s\"`, or `redis:\"-\"` to leave it out", strings.ToLower(f.Name))
		default:
			name, ttl, err := parseTag(tag)
			if err != nil {
				fail("%w", err)
				continue
			}
			if other, taken := p.byName[name]; taken {
				fail("the name %q is that of field %s too", name, root.FieldByIndex(p.fields[other].index).Name)
				continue
			}
			form, err := formOf(f.Type)
			if err != nil {
				fail("%w", err)
				continue
			}
			p.byName[name] = len(p.fields)
			p.fields = append(p.fields, field{name, at, ttl, form})
			p.every, p.names = append(p.every, len(p.every)), append(p.names, name)
		}
	}
	return errors.Join(wrong...)
}

// hasTags reports whether t, or what it points to, is a struct with redis tags, perhaps those of an embedded struct.
func hasTags(t reflect.Type, within []reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(within, t) {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if tag, tagged := f.Tag.Lookup("redis"); tagged && tag != "-" || f.Anonymous && hasTags(f.Type, append(within, t)) {
			return true
		}
	}
	return false
}

// parseTag reads "name" or "name,ttl=15m".
func parseTag(tag string) (name string, ttl time.Duration, err error) {
	name, options, more := strings.Cut(tag, ",")
	if name == "" {
		return "", 0, errors.New("the field's name in Redis is missing: it comes first")
	}
	for more {
		var option string
		option, options, more = strings.Cut(options, ",")
		text, isTTL := strings.CutPrefix(option, "ttl=")
		switch {
		case !isTTL:
			return "", 0, fmt.Errorf("unknown option %q: the only option is ttl, as in ttl=15m", option)
		case ttl != 0:
			return "", 0, errors.New("it has two TTLs")
		}
		if ttl, err = time.ParseDuration(text); err != nil {
			return "", 0, fmt.Errorf("the ttl must be a duration such as 15m or 1h30m, got %q", text)
		}
		if err := check.TTL("the ttl", ttl); err != nil {
			return "", 0, err
		}
	}
	return name, ttl, nil
}

// find returns the fields with these names.
func (p *plan) find(names []string) ([]int, error) {
	if len(names) == 0 {
		return nil, errors.New("name at least one field")
	}
	found := make([]int, 0, len(names))
	for _, name := range names {
		i, ok := p.byName[name]
		if !ok {
			return nil, fmt.Errorf("there is no field %q", name)
		}
		if !slices.Contains(found, i) {
			found = append(found, i)
		}
	}
	return found, nil
}

// volatile returns the fields with these names, each of which must have a TTL.
func (p *plan) volatile(names []string) ([]int, error) {
	fields, err := p.find(names)
	for _, i := range fields {
		if f := p.fields[i]; f.ttl == 0 {
			return nil, fmt.Errorf("field %q has no ttl in its tag: it lives as long as the key", f.name)
		}
	}
	return fields, err
}

// namesOf returns the names of fields, as arguments of commands.
func (p *plan) namesOf(fields []int) []any {
	names := make([]any, len(fields))
	for n, i := range fields {
		names[n] = p.names[i]
	}
	return names
}

// hpexpire returns an HPEXPIRE of fields.
func (p *plan) hpexpire(full string, ttl time.Duration, fields []int) []any {
	return append([]any{"hpexpire", full, ttl.Milliseconds(), "fields", len(fields)}, p.namesOf(fields)...)
}

// atOnce yields all fields as one group, for commands that need no TTL.
func atOnce(fields []int) iter.Seq2[time.Duration, []int] {
	return func(yield func(time.Duration, []int) bool) { yield(0, fields) }
}

// byTTL yields each TTL that fields have, including zero, with the fields that have it.
func (p *plan) byTTL(fields []int) iter.Seq2[time.Duration, []int] {
	return func(yield func(time.Duration, []int) bool) {
		for rest := fields; len(rest) > 0; {
			ttl := p.fields[rest[0]].ttl
			var same, others []int
			for _, i := range rest {
				if p.fields[i].ttl == ttl {
					same = append(same, i)
				} else {
					others = append(others, i)
				}
			}
			if !yield(ttl, same) {
				return
			}
			rest = others
		}
	}
}
