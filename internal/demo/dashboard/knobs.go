package dashboard

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// knob is a switch or a slider of the page, by its name there. Durations are milliseconds.
type knob struct {
	on *bool
	n  *int
	d  *time.Duration
}

func knobs(s *panel.Settings) map[string]knob {
	return map[string]knob{
		"mayfly": {on: &s.Mayfly}, "jitter": {on: &s.Jitter}, "lease": {on: &s.Lease}, "early": {on: &s.Early}, "local": {on: &s.Local},
		"pages": {on: &s.Pages}, "sliding": {on: &s.Sliding}, "fields": {on: &s.Fields}, "visits": {on: &s.Visits},
		"shoppers": {n: &s.Shoppers}, "connections": {n: &s.Connections}, "processes": {n: &s.Processes},
		"pause": {d: &s.Pause}, "ttl": {d: &s.TTL}, "query": {d: &s.Query},
	}
}

// values returns all settings as the page has them: switches are 0 or 1.
func values(s panel.Settings) map[string]int64 {
	all := make(map[string]int64)
	for name, k := range knobs(&s) {
		switch {
		case k.on != nil && *k.on:
			all[name] = 1
		case k.on != nil:
			all[name] = 0
		case k.n != nil:
			all[name] = int64(*k.n)
		default:
			all[name] = k.d.Milliseconds()
		}
	}
	return all
}

// turn sets one of the settings, and says so in a few words.
func turn(s *panel.Settings, name, value string) (string, error) {
	k, ok := knobs(s)[name]
	if !ok {
		var all []string
		for name := range knobs(s) {
			all = append(all, name)
		}
		sort.Strings(all)
		return "", fmt.Errorf("there is no setting %q: there are %s", name, strings.Join(all, ", "))
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return "", fmt.Errorf("%s takes a number, got %q", name, value)
	}
	switch {
	case k.on != nil && (n == 0 || n == 1):
		*k.on = n == 1
		return name + [...]string{" off", " on"}[n], nil
	case k.on != nil:
		return "", fmt.Errorf("%s takes 0 or 1, got %d", name, n)
	case k.n != nil:
		*k.n = int(n)
	default:
		*k.d = time.Duration(n) * time.Millisecond
		return fmt.Sprintf("%s %v", name, *k.d), nil
	}
	return fmt.Sprintf("%s %d", name, n), nil
}
