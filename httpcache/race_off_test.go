//go:build !race

package httpcache_test

// many is how many requests a flood has.
const many = 100_000
