// What all packages promise when requests come late or twice, processes die and servers fail: apart from the library, so that its own tests
// stay quick and the checker of linearizability reaches nobody else.
module github.com/mayflycache/mayfly/trials

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/mayflycache/mayfly v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/yuin/gopher-lua v1.1.2 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/mayflycache/mayfly => ..
