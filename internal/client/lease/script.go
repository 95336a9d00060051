package lease

import "github.com/mayflycache/mayfly/internal/client/nodes"

// The scripts: each reads one key, decides, and writes it. All a comparison needs is the bytes up to the id, and the length.
var (
	// swap  k, head, length, new, ms: new in place of what has this head and length. Repeated, it knows its own work.
	swap = nodes.NewScript(`local v = redis.call('GET', KEYS[1])
if v and #v == tonumber(ARGV[2]) and string.sub(v, 1, #ARGV[1]) == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
	return 1
end
return v == ARGV[3] and 1 or 0`)

	// keep  k, token, ms: prolongs it if it is still this one.
	keep = nodes.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`)

	// drop  k, token: removes it if it is still this one.
	drop = nodes.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

	// fillPlain  sibling, k, token, what k held ('-' nothing, '+' and the bytes), new, ms: ends the lease, and puts new if
	// the lease was still ours and k holds what it held.
	fillPlain = nodes.NewScript(`local v = redis.call('GET', KEYS[2])
local mine = redis.call('GET', KEYS[1]) == ARGV[1]
if mine then redis.call('DEL', KEYS[1]) end
if mine and (v and '+' .. v or '-') == ARGV[2] then
	redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
	return 1
end
return v == ARGV[3] and 1 or 0`)
)
