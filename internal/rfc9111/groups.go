package rfc9111

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Groups returns the groups of a response (RFC 9875, section 2), each with its origin, so that those of different origins are different:
// key is that of the request. A field that is not a list of strings is ignored.
func Groups(key string, response http.Header) []string {
	return groups(key, response["Cache-Groups"])
}

// InvalidatedGroups returns the groups that a response to a request with this method voids (RFC 9875, section 3): none if the method is
// safe.
func InvalidatedGroups(key, method string, response http.Header) []string {
	if slices.Contains(safe, method) {
		return nil
	}
	return groups(key, Canonical(response)["Cache-Group-Invalidation"])
}

func groups(key string, lines []string) (all []string) {
	if len(lines) == 0 || key == "" {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			return nil
		}
		name, ok := item.Value.(string)
		if !ok {
			return nil
		}
		all = append(all, Group(key, name))
	}
	return all
}

// Group names a group of the origin of a key. No tag has such a name: it contains spaces.
func Group(key, name string) string {
	scheme, rest, _ := strings.Cut(key, "://")
	host, _, _ := strings.Cut(rest, "/")
	return "group " + scheme + "://" + host + " " + name
}
