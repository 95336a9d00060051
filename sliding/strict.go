package sliding

// strictParts is into how many parts a strict window is divided: a call counts until all of its part is a window old.
const strictParts = 16

// strictWindow  k, n, limit, part: admits n if no stretch of a window's length then has more than the limit. A part is a 16th of a window,
// rounded up, and begins at multiples of its length. k holds which part it is, and what was admitted in it and in each of the
// 16 before. The answer is whether, what counts, when nothing will if nobody calls, and when n fit. If the clock went back, the part that was
// written last is the one that runs: nothing is forgotten, and counts for as much longer.
var strictWindow = counter(18, `local n, limit, part = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local index, over = math.floor(now / part), now % part
local counts, used, at, i = {}, 0, nil, 1 -- the first is of the part that runs
for p = 1, 17 do counts[p] = 0 end
for word in string.gmatch(held or '', '%d+') do
	if not at then
		at = tonumber(word)
		i = math.max(index - at, 0) + 1
	else
		if i <= 17 then
			counts[i] = tonumber(word)
			used = used + counts[i]
		end
		i = i + 1
	end
end
local ok = used + n <= limit and 1 or 0
if ok == 1 then
	counts[1] = counts[1] + n
	used = used + n
end
local reset, retry, left = 0, 0, used
for p = 17, 1, -1 do
	if counts[p] > 0 then
		reset = (18 - p) * part - over
		left = left - counts[p]
		if retry == 0 and left + n <= limit then retry = reset end
	end
end
if ok == 1 and n > 0 or at and at > index then
	redis.call('SET', KEYS[1], string.format('%d ', index) .. table.concat(counts, ' '), 'PX', 17 * part - over)
end
return {ok, used, reset, retry}`)
