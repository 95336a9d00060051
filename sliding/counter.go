package sliding

import (
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// A counter is one short string per key: the numbers of its way to count and, behind a semicolon, the shares that processes have leased of it,
// each as id, calls, which window, and end. One number is a fixed window, three a sliding one, eighteen a strict one.
//
// Scripts read it into k and give it to its way, which adds: room, the calls that fit now; at, which window that is; stays, for how long what
// is counted now is in it; put, which counts calls and writes; and tell, which is whether calls were admitted and the three numbers that
// the Go side makes a [Decision] of.

// way is a way to count: how many numbers it has, and its Lua.
type way struct {
	numbers int
	source  string
}

// script returns the script that counts calls of one key: n, limit, window.
func (w way) script() sendonce.Script {
	return counting(w.source+`local k, foreign = read(KEYS[1], $numbers)
if foreign then return {foreign} end
local n = tonumber(ARGV[1])
way[$numbers](k, tonumber(ARGV[2]), tonumber(ARGV[3]))
local ok = n <= k.room
k.put(ok and n or 0)
return {ok and 1 or 0, k.tell(n)}`, w.numbers)
}

func counting(source string, numbers int) sendonce.Script {
	return sendonce.NewScript(strings.NewReplacer("$numbers", strconv.Itoa(numbers), "$endless", strconv.Itoa(endless), "$stride", strconv.Itoa(stride)).Replace(readCounter + source))
}

// endless is the answer of a counter that finds a key without a TTL.
const endless = 1

// readCounter begins all scripts. read returns what a key holds, or the number that says it is somebody else's. What another way to count wrote,
// which this prefix had before, counts for nothing.
const readCounter = `local way = {}
local function clock()
	local t = redis.call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000), t[2] % 1000 / 1000
end
local function read(key, numbers)
	local k = {key = key, left = -2, leases = ''}
	local held, left = redis.call('GET', key), redis.call('PTTL', key)
	if not held then return k end
	if left == -1 then return nil, $endless end
	local counts, leases = string.match(held, '^([%d ]+);?([%d ]*)$')
	local c = {}
	for word in string.gmatch(counts or '', '%d+') do c[#c + 1] = tonumber(word) end
	if #c ~= 1 and #c ~= 3 and #c ~= 18 or #c == 1 and #counts > 10 then return nil, 0 end
	if #c == numbers then k.c, k.left, k.leases = c, left, leases end
	return k
end
local function text(k, counts)
	if k.leases == '' then return counts end
	return counts .. ';' .. k.leases
end
`

// fixedWindow begins with its first call, and ends with the key. What ends later than a window from now was begun before the clock went back.
var fixedWindow = way{1, `way[1] = function(k, limit, window)
	local used, begun, longer = k.c and k.c[1] or 0, k.left >= 0, k.left > window
	if longer or not begun then k.left = window end
	k.room, k.at, k.stays, k.lost = limit - used, 0, k.left - 1, true
	function k.put(n)
		used = used + n
		if longer or not begun and n > 0 then
			redis.call('SET', k.key, text(k, used), 'PX', k.left)
		elseif k.changed or n > 0 and k.leases ~= '' then
			redis.call('SET', k.key, text(k, used), 'KEEPTTL')
		elseif n > 0 then
			redis.call('INCRBY', k.key, n)
		end
		if not begun and n == 0 then k.left = 0 end
	end
	function k.tell() return used, k.left, k.left end
end
`}

// slidingWindow begins at multiples of its length. The key holds which window it is, and what was admitted in it and in the one before. A clock
// that went back, as at a failover, by little, waits for the window to begin; by more, all that was admitted counts in the window
// that it went back to.
var slidingWindow = way{3, `way[3] = function(k, limit, window)
	local now, us = clock()
	local index, over = math.floor(now / window), now % window
	local used, before, back, c = 0, 0, false, k.c
	if c then
		if c[1] == index + 1 then index, over = c[1], 0 end
		if c[1] == index then
			used, before = c[2], c[3]
		elseif c[1] == index - 1 then
			before = c[2]
		elseif c[1] > index then
			used, back, k.leases = c[2] + c[3], true, ''
		end
	end
	k.room, k.at, k.stays = limit - used - math.ceil(before * (window - over) / window), index, window - over - us
	function k.put(n)
		used = used + n
		if n > 0 or back or k.changed then
			redis.call('SET', k.key, text(k, string.format('%d %d %d', index, used, before)), 'PX', 2 * window - over)
		end
	end
	function k.tell() return used, before, over end
end
`}

// strictParts is into how many parts a strict window is divided: a call counts until all of its part is a window old.
const strictParts = 16

// strictWindow admits calls if no stretch of a window's length then has more than the limit. A part is a 16th of a window, rounded up, and begins at
// multiples of its length. The key holds which part it is, and what was admitted in it and in each of the 16 before. It tells what counts, when
// nothing will if nobody calls, and when n fit. If the clock went back, the part that was written last is the one that runs: nothing is
// forgotten, and counts for as much longer.
var strictWindow = way{18, `way[18] = function(k, limit, part)
	local now, us = clock()
	local index, over = math.floor(now / part), now % part
	local counts, used, back = {}, 0, k.c and k.c[1] > index -- the first is of the part that runs
	for p = 1, 17 do counts[p] = 0 end
	if k.c then
		local later = math.max(index - k.c[1], 0)
		for p = 1, 17 - later do
			counts[p + later] = k.c[p + 1]
			used = used + k.c[p + 1]
		end
	end
	if back then k.leases = '' end
	k.room, k.at, k.stays = limit - used, index, part - over - us
	function k.put(n)
		counts[1], used = counts[1] + n, used + n
		if n > 0 or back or k.changed then
			redis.call('SET', k.key, text(k, string.format('%d ', index) .. table.concat(counts, ' ')), 'PX', 17 * part - over)
		end
	end
	function k.tell(n)
		local reset, retry, left = 0, 0, used
		for p = 17, 1, -1 do
			if counts[p] > 0 then
				reset = (18 - p) * part - over
				left = left - counts[p]
				if retry == 0 and left + n <= limit then retry = reset end
			end
		end
		return used, reset, retry
	end
end
`}
