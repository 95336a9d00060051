// Histories of sliding, checked for linearizability: apart so that the checker reaches nobody else.
module github.com/mayflycache/mayfly/histories

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/mayflycache/mayfly v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/yuin/gopher-lua v1.1.2 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/mayflycache/mayfly => ..
