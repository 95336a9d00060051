package sliding

import (
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// A counter is one short string per key: the numbers of its way to count and, behind a semicolon, the shares of it that processes have leased,
// each as id, calls, window, end, and the length of its lease. One number is a fixed window, three a sliding one, eighteen a strict one.

// way is a way to count: how many numbers it has, and the pieces of Lua that its scripts consist of. The pieces are joined as text, with local
// variables and without functions, because running Lua is most of what a script costs the server.
type way struct {
	numbers int
	names   string // the names of its numbers in the order of match's groups; the first is always there
	match   string // the pattern that matches them
	read    string // converts the matches to numbers
	clock   string // reads the server's clock as far as needed
	weigh   string // sets room, the number of calls that fit now
	put     string // counts take calls, and writes the result, or only what changed
	says    string // the three numbers from which Go makes a [Decision]
	adds    string // more numbers for a process that is going to refuse calls

	stamp string // identifies the current window
	stays string // for how many ms calls that are counted now stay in it
	give  string // takes back unused calls of an earlier window
	fades bool   // unused calls of a window do not count in the next one
}

// script returns the script that counts calls of one key: n, limit, window.
func (w way) script() sendonce.Script {
	return sendonce.NewScript(w.fill(`local key, n, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
$look
$clock
$weigh
local ok = n <= room
local take = ok and n or 0
$put
return {ok and 1 or 0, $says}`))
}

// fill replaces the names in a script by the pieces of the way to count.
func (w way) fill(script string) string {
	first, _, _ := strings.Cut(w.names, ",")
	pieces := strings.NewReplacer("$names", w.names, "$first", first, "$match", w.match, "$numbers", strconv.Itoa(w.numbers), "$endless", strconv.Itoa(endless))
	return strings.NewReplacer("$look", pieces.Replace(look)+w.read, "$clock", w.clock, "$weigh", w.weigh, "$put", w.put, "$says", w.says, "$adds", w.adds, "$stamp", w.stamp, "$stays", w.stays,
		"$give", w.give, "$fades", strconv.FormatBool(w.fades), "$numbers", strconv.Itoa(w.numbers), "$stride", strconv.Itoa(stride)).Replace(script)
}

// endless is the answer if a key has no TTL.
const endless = 1

// look reads what a key holds, or returns a number that says that the value is foreign. If this prefix had another way to count before, what that
// wrote counts as nothing.
const look = `local held, left = redis.call('GET', key), redis.call('PTTL', key)
if left == -1 then return {$endless} end
local leases, changed = '', false
local $names = string.match(held or '', '^$match$')
if held and not $first then
	$names, leases = string.match(held, '^$match;([%d ]+)$')
	if not $first then
		local counts = string.match(held, '^[%d ]+$') or string.match(held, '^([%d ]+);[%d ]+$')
		local _, numbers = string.gsub(counts or '', '%d+', '')
		if numbers == $numbers or numbers ~= 1 and numbers ~= 3 and numbers ~= 18 or numbers == 1 and #counts > 10 then return {0} end
		left, leases = -2, ''
	end
end
`

// clock reads the server's clock in ms, which time keeps in more detail.
const clock = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

// fixedWindow begins with its first call, and ends with the key, which exists one millisecond longer than its TTL says. A window that ends more than
// a window's length from now began before the clock went back.
var fixedWindow = way{
	numbers: 1, names: "used", match: "(%d+)",
	read: `if used and #used > 10 then return {0} end
used = tonumber(used or 0)
`,
	weigh: `local begun, longer = left >= 0, left > window
if longer or not begun then left = math.max(window - 1, 1) end
local room = limit - used
`,
	put: `used = used + take
local text = used
if leases ~= '' then text = used .. ';' .. leases end
if longer or not begun and take > 0 then
	redis.call('SET', key, text, 'PX', left)
elseif changed or take > 0 and leases ~= '' then
	redis.call('SET', key, text, 'KEEPTTL')
elseif take > 0 then
	redis.call('INCRBY', key, take)
end
if begun or take > 0 then left = left + 1 else left = 0 end
`,
	says:  "used, left, left",
	stamp: "0", stays: "left", fades: true,
	give: "used = math.max(used - unused, 0)",
}

// writeText writes text with the TTL lasts. Usually the key has that end already, and keeping it costs less.
const writeText = `	if leases ~= '' then text = text .. ';' .. leases end
	if at == index and left >= lasts - 1 then
		redis.call('SET', key, text, 'KEEPTTL')
	else
		redis.call('SET', key, text, 'PX', lasts)
	end
`

// slidingWindow begins at multiples of its length. The key holds the window's index, and the calls admitted in it and in the one before. If the
// clock goes back a little, as at a failover, the counter waits for the window to begin. If it goes back further, all admitted calls count in the
// window that it went back to.
var slidingWindow = way{
	numbers: 3, names: "at, used, before", match: "(%d+) (%d+) (%d+)",
	read: `at, used, before = tonumber(at), tonumber(used or 0), tonumber(before or 0)
`,
	clock: clock,
	weigh: `local index, over, back = math.floor(now / window), now % window, false
if at == index + 1 then index, over = at, 0 end
if at and at > index then
	used = used + before
	before, back, leases = 0, true, ''
elseif at ~= index then
	before = at == index - 1 and used or 0
	used = 0
end
local room = limit - used - math.ceil(before * (window - over) / window)
`,
	put: `used = used + take
if take > 0 or back or changed then
	local text, lasts = string.format('%d %d %d', index, used, before), 2 * window - over
` + writeText + `end
`,
	says:  "used, before, over",
	stamp: "index", stays: "window - over - time[2] % 1000 / 1000",
	give: `if stamp == at then
			used = math.max(used - unused, 0)
		elseif stamp == at - 1 then
			before = math.max(before - unused, 0)
		end`,
}

// strictParts is the number of parts of a strict window: a call counts until its whole part is a window old.
const strictParts = 16

// strictWindow admits calls only if no stretch of a window's length then has more than the limit. A part is a 16th of a window, rounded up, and
// begins at multiples of its length. The key holds the part's index, and the calls admitted in it and in each of the 16 before. The answer says how
// many calls count, when none will count if nobody calls, and when n fit. If the clock went back, the part written last becomes the current part:
// nothing is forgotten, and counts that much longer.
var strictWindow = way{
	numbers: 18, names: "at, parts", match: "(%d+) (%d+" + strings.Repeat(" %d+", strictParts) + ")",
	read: `local counts = {} -- the first is of the part that was written last
for word in string.gmatch(parts or '', '%d+') do counts[#counts + 1] = tonumber(word) end
at = tonumber(at)
`,
	clock: clock,
	weigh: `local index, over, used = math.floor(now / window), now % window, 0
local back, later = at and at > index, 17
if at then later = math.min(math.max(index - at, 0), 17) end
if back then leases = '' end
for p = 17, 1, -1 do
	counts[p] = p > later and counts[p - later] or 0
	used = used + counts[p]
end
local room = limit - used
`,
	put: `counts[1], used = counts[1] + take, used + take
if take > 0 or back or changed then
	local text, lasts = string.format('%d ', index) .. table.concat(counts, ' '), 17 * window - over
` + writeText + `end
local reset, retry, rest = 0, 0, used
for p = 17, 1, -1 do
	if counts[p] > 0 then
		reset, rest = (18 - p) * window - over, rest - counts[p]
		if retry == 0 and rest + n <= limit then retry = reset end
	end
end
`,
	says: "used, reset, retry",
	adds: `if not ok or room <= take then
	answer[9] = over
	for p = 1, 17 do answer[9 + p] = counts[p] end
end`,
	stamp: "index", stays: "window - over - time[2] % 1000 / 1000",
	give: `local p = at - stamp + 1
		if p >= 1 and counts[p] then counts[p] = math.max(counts[p] - unused, 0) end`,
}
