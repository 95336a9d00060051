// Ttlguard finds calls of go-redis that leave a key without a TTL, before they run:
//
//	go install github.com/mayflycache/mayfly/cmd/ttlguard@latest
//	ttlguard ./...
//	go vet -vettool=$(which ttlguard) ./...
//
// The package ttlvet says what it finds, and docs/ttlguard.md how to adopt it in an existing program.
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/mayflycache/mayfly/cmd/ttlguard/ttlvet"
)

func main() { singlechecker.Main(ttlvet.Analyzer) }
