//go:build race

package httpcache_test

// many is how many requests a flood has: a tenth under the race detector, which makes each ten times as dear.
const many = 10_000
