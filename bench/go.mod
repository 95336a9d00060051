module github.com/mayflycache/mayfly/bench

go 1.26.0

require (
	github.com/Yiling-J/theine-go v0.6.3
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/bytedance/sonic v1.15.5
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/go-chi/stampede v0.5.1
	github.com/go-redis/cache/v9 v9.0.0
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/jellydator/ttlcache/v3 v3.4.1
	github.com/maypok86/otter/v2 v2.4.0
	github.com/prometheus/client_golang v1.25.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.78
	github.com/redis/rueidis/rueidisaside v1.0.78
	github.com/viccon/sturdyc v1.1.5
	github.com/victorspringer/http-cache v0.0.0-20240523143319-7d9f48f8ab91
	github.com/vmihailenco/msgpack/v5 v5.4.1
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic/loader v0.5.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/hashicorp/golang-lru v0.5.5-0.20200511160909-eb529947af53 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/vmihailenco/go-tinylfu v0.2.2 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/yuin/gopher-lua v1.1.2 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/arch v0.0.0-20210923205945-b76863e36670 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

require (
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/mayflycache/mayfly v0.0.0
	github.com/zeebo/xxh3 v1.1.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/mayflycache/mayfly => ..
