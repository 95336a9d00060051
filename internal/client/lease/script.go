package lease

import "github.com/mayflycache/mayfly/internal/client/nodes"

// Each script reads one key, decides, and writes. A comparison needs only the bytes up to the ID, and the length.
var (
	// swap  k, head, length, new, ms: stores new if k holds something with this head and length. When repeated, it recognizes its own work.
	swap = nodes.NewScript(`local v = redis.call('GET', KEYS[1])
if v and #v == tonumber(ARGV[2]) and string.sub(v, 1, #ARGV[1]) == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
	return 1
end
return v == ARGV[3] and 1 or 0`)

	// fill  k, head, length, before, after, ms, time: stores a record if k holds something with this head and length. The arguments have the
	// record's bytes before and after its end. The end itself is this server's time plus ms, or zero if time is not 1 or the user may not ask
	// for it. When repeated, it recognizes its own work.
	fill = nodes.NewScript(`local v, before, after = redis.call('GET', KEYS[1]), ARGV[3], ARGV[4]
if v and string.sub(v, 1, #ARGV[1]) == ARGV[1] and #v == tonumber(ARGV[2]) then
	local t, ends, text = ARGV[6] == '1' and redis.pcall('TIME') or {}, 0, ''
	if t[1] then ends = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[5] end
	if ends >= 2^48 then ends = 0 end
	for i = 1, 6 do text = string.char(ends % 256) .. text; ends = math.floor(ends / 256) end
	redis.call('SET', KEYS[1], before .. text .. after, 'PX', ARGV[5])
	return 1
end
return v and #v == #before + 6 + #after and string.sub(v, 1, #before) == before and 1 or 0`)

	// keep  k, token, ms: extends the TTL if k still holds token.
	keep = nodes.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`)

	// drop  k, token: removes k if it still holds token.
	drop = nodes.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

	// bury  k, tombstone, ms: replaces whatever k holds by a tombstone, which lives for ms, or for as long as one that is there would have. The DEL
	// comes first: a server that is out of memory lets a script end that has begun to write, and would refuse the SET otherwise.
	bury = nodes.NewScript(`local k, new, ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local v = redis.pcall('GET', k)
if type(v) == 'string' and #v == #new and string.sub(v, 1, 12) == string.sub(new, 1, 12) then
	ms = math.max(ms, redis.call('PTTL', k))
end
redis.call('DEL', k)
redis.call('SET', k, new, 'PX', ms)
return 1`)

	// sweep  k, tombstone: removes k, unless it holds a tombstone.
	sweep = nodes.NewScript(`local v, like = redis.pcall('GET', KEYS[1]), ARGV[1]
if type(v) == 'string' and #v == #like and string.sub(v, 1, 12) == string.sub(like, 1, 12) then return 0 end
return redis.call('UNLINK', KEYS[1])`)

	// raise  k, new, ms: stores new, unless k holds the same form with a greater number in its last eight bytes.
	raise = nodes.NewScript(`local v, new = redis.call('GET', KEYS[1]), ARGV[1]
local function part(s) return string.sub(s, 1, 12) .. string.sub(s, 25, 28) end
if v and #v == #new and part(v) == part(new) then
	for i = #v - 7, #v do
		local is, to = string.byte(v, i), string.byte(new, i)
		if is > to then return 1 end
		if is < to then break end
	end
end
redis.call('SET', KEYS[1], new, 'PX', ARGV[2])
return 1`)

	// draw  k, new, least, draws: returns the number in the last eight bytes of k's record, and how many milliseconds the record lives. If draws
	// is 1, the number becomes the server's time in microseconds, or the next number if that is greater. So it is not ahead of the server's clock,
	// and stays greater than all earlier numbers after the key was lost. The record is written with new's other bytes if it would live for less
	// than least milliseconds, gets another number, or does not exist; then it lives for new's time if that is longer. Nothing ever makes the number
	// or the life smaller, so a copy that arrives late does no harm. Lua's numbers are too short for some records, so the script compares bytes.
	draw = nodes.NewScript(`local k, new, ms, least, draws = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local v, number, left, time = redis.call('GET', k), '', 0, redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for i = 1, 8 do
	number = string.char(now % 256) .. number
	now = math.floor(now / 256)
end
local function form(s) return string.sub(s, 1, 4) .. string.sub(s, 6, 6) .. string.sub(s, 25, 28) end
local mine = v and #v > 50 and form(v) == form(new) and string.byte(v, -8) < 128
if mine then
	local old = string.sub(v, -8)
	left = redis.call('PTTL', k)
	local after = false
	for i = 1, 8 do
		local is, to = string.byte(old, i), string.byte(number, i)
		if is ~= to then after = is < to break end
	end
	if not draws then
		number = old
	elseif not after then
		number = ''
		local more = 1
		for i = 8, 1, -1 do
			local byte = string.byte(old, i) + more
			more = byte > 255 and 1 or 0
			number = string.char(byte % 256) .. number
		end
	end
	if not draws and left >= least then return {number, left} end
end
local rest = string.sub(new, 25, -9)
if left >= least then
	ms = left
	if #v == #new then rest = string.sub(v, 25, -9) end
else
	ms = math.max(ms, left)
end
redis.call('SET', k, string.sub(new, 1, 24) .. rest .. number, 'PX', ms)
return {number, ms}`)

	// fillPlain  sibling, k, token, what k held ('-' nothing, '+' these bytes, '?' these bytes or by now nothing), new, ms: ends the lease,
	// and stores new if the lease was still ours and k still holds what it held.
	fillPlain = nodes.NewScript(`local v = redis.call('GET', KEYS[2])
local mine = redis.call('GET', KEYS[1]) == ARGV[1]
if mine then redis.call('DEL', KEYS[1]) end
local how, same = string.sub(ARGV[2], 1, 1)
if v then same = how ~= '-' and v == string.sub(ARGV[2], 2) else same = how ~= '+' end
if mine and same then
	redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
	return 1
end
return v == ARGV[3] and 1 or 0`)
)
