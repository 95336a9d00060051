# Everything CI can fail on is one word here.

FUZZTIME ?= 10s
COMMANDS ?= 2000000
CHAOS ?= 10m
HISTORIES ?= 30s
TOOL = go tool -modfile=tools/go.mod

.PHONY: check test trials modules lint ttlguard long race fuzz chaos diff given examples apidiff mutants bench swapped vuln

check: lint test trials modules ## what to run before a commit: under a minute when warm

test:
	go test ./...

trials: ## what all packages promise over bad networks
	cd trials && go test ./...

modules: ## the Observer for OpenTelemetry, and the analyzer: modules of their own, which users import
	@set -e; for module in otel cmd/ttlguard; do echo "module $$module"; \
		(cd $$module && go vet ./... && go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./... && go test ./...); done

jsonv2: ## the codec JSON as a build with encoding/json/v2 has it
	GOEXPERIMENT=jsonv2 go test -count=1 -run 'JSON|Codec|Format' .

ttlguard: ## our own calls of go-redis, by our own analyzer
	@set -e; out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; (cd cmd/ttlguard && go build -o "$$out/ttlguard" .); \
		for module in . examples trials; do (cd $$module && go vet -vettool="$$out/ttlguard" ./...); done

lint:
	@out=$$(gofmt -l .); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	go vet ./...
	$(TOOL) staticcheck ./...
	go test -count=1 -run 'Imports|Waits|Drawing' ./internal/checks
	$(TOOL) actionlint -shellcheck= -pyflakes= .github/workflows/*.yml

long: export MAYFLY_LONG = 1
long: ## the tests at their full length: they repeat what a plain run does a few times
	go test -count=1 ./...
	cd trials && go test -count=1 ./...

race: export GORACE = atexit_sleep_ms=50
race:
	go test -race ./...

fuzz: ## every fuzz target for FUZZTIME, two packages at once
	@git grep -lE '^func Fuzz\w+' -- '*_test.go' ':!bench' ':!examples' ':!trials' | xargs -n1 dirname | sort -u | xargs -P 2 -I DIR .ci/fuzz DIR $(FUZZTIME)

chaos: export MAYFLY_REQUIRE_REDIS = 1
chaos: ## four processes and all that happens to servers and networks, for CHAOS; then recorded histories, HISTORIES of each kind
	@set -e; bin=$$(.ci/redis); export MAYFLY_REDIS_BIN=$$bin; cd trials; \
		go test -count=1 -timeout=24h -v ./chaos -for $(CHAOS); \
		go test -count=1 -timeout=24h ./histories -for $(HISTORIES); \
		go test -count=1 -timeout=24h ./linear -for $(HISTORIES)

diff: export MAYFLY_REQUIRE_REDIS = 1
diff: ## the tests with all that .ci/programs names, none that needs a real Redis skipped; then COMMANDS commands compared with it
	programs=$$(.ci/programs) && eval "$$programs" && \
		go test -count=1 ./... && (cd trials && go test -count=1 ./...) && \
		go test -count=1 -timeout=6h -v -run='^TestDifferential$$' ./internal/redis/engine -seed=0 -commands=$(COMMANDS)

given: ## the suites of the patterns with the server of MAYFLY_REDIS_URL, of any version, which they empty
	@test -n "$$MAYFLY_REDIS_URL" || { echo "MAYFLY_REDIS_URL is not set: redis://host:port of a server that may be emptied"; exit 2; }
	go test -count=1 -p 1 -parallel 1 ./cacheaside ./httpcache ./navsession ./sliding ./ttlaudit ./internal/client/lease
	cd examples && go test -count=1 -p 1 -parallel 1 ./api ./shop ./worker

swapped: ## the tests of public modules on the double, by import or over port 6379, which must be free
	.ci/swapped

examples: ## the programs of examples, and the README's code in a module of its own; .ci/postgres and .ci/redis find what they need
	postgres=$$(.ci/postgres) && redis=$$(.ci/redis) && export MAYFLY_POSTGRES_BIN=$$postgres MAYFLY_REDIS_BIN=$$redis && cd examples && go vet ./... && go test -count=1 ./...

apidiff: ## what changed in the API since the latest tag
	.ci/apidiff

mutants: ## breaks the cache's protocol on purpose, rule by rule: each must be noticed. Ten minutes
	go test -count=1 -timeout 30m -v -run Caught ./internal/checks -mutants

bench: ## measures and rewrites the tables of docs/performance.md and docs/dead-keys.svg
	cd bench && go run ./deadplot > ../docs/dead-keys.svg
	cd bench && go run .

vuln: ## needs the network
	$(TOOL) govulncheck ./...
