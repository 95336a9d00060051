package rfc9111

import "net/http"

// ParseVary returns the lower-case names of the request fields that choose between the variants of a response, sorted, each
// once. ok is false where no request ever matches: "*" anywhere, or more fields than a cache should tell apart.
func ParseVary(response http.Header) (fields []string, ok bool) { return nil, true }

// Variant returns what a request says in those fields, normalised, in a form in which no two different selections meet:
// an absent field differs from an empty one; whitespace folds; the order and case of languages and codings does not count.
// It is short: what is long is there as its SHA-256.
func Variant(fields []string, request http.Header) string { return "" }
