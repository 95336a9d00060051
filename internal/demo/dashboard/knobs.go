package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// knobs are the switches (*bool) and sliders (*int, *time.Duration) of the page, by their names on the page.
func knobs(s *panel.Settings) map[string]any {
	return map[string]any{
		"mayfly": &s.Mayfly, "jitter": &s.Jitter, "lease": &s.Lease, "early": &s.Early, "local": &s.Local,
		"pages": &s.Pages, "sliding": &s.Sliding, "fields": &s.Fields, "visits": &s.Visits, "admission": &s.Admission,
		"shoppers": &s.Shoppers, "connections": &s.Connections, "processes": &s.Processes,
		"pause": &s.Pause, "ttl": &s.TTL, "query": &s.Query,
	}
}

// switches are the patterns, in the order of the page.
var switches = []string{"lease", "early", "local", "jitter", "pages", "sliding", "fields", "visits", "admission"}

// values returns all settings in the page's form: switches are 0 or 1, durations milliseconds.
func values(s panel.Settings) map[string]int64 {
	all := make(map[string]int64)
	for name, k := range knobs(&s) {
		switch k := k.(type) {
		case *bool:
			all[name] = 0
			if *k {
				all[name] = 1
			}
		case *int:
			all[name] = int64(*k)
		case *time.Duration:
			all[name] = k.Milliseconds()
		}
	}
	return all
}

// turn sets one setting, and returns a few words about it.
func turn(s *panel.Settings, name, value string) (string, error) {
	k, ok := knobs(s)[name]
	if !ok {
		all := slices.Sorted(maps.Keys(knobs(s)))
		return "", fmt.Errorf("there is no setting %q: there are %s", name, strings.Join(all, ", "))
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return "", fmt.Errorf("%s takes a number, got %q", name, value)
	}
	switch k := k.(type) {
	case *bool:
		if n != 0 && n != 1 {
			return "", fmt.Errorf("%s takes 0 or 1, got %d", name, n)
		}
		*k = n == 1
		return name + [...]string{" off", " on"}[n], nil
	case *time.Duration:
		*k = time.Duration(n) * time.Millisecond
		return fmt.Sprintf("%s %v", name, *k), nil
	case *int:
		*k = int(n)
	}
	return fmt.Sprintf("%s %d", name, n), nil
}
