package sliding

import "github.com/mayflycache/mayfly/internal/client/sendonce"

// leaseReply is the least number of numbers that a lease script answers.
const leaseReply = 8

// leaseScript returns the script of one trip: it takes back the unused calls of ended shares, counts n calls of one key, and counts a share of the
// remaining calls too.
//
// Its arguments are n, limit and window; how many calls the share should have, how many calls the process receives per lease, the length of the lease
// in ms, how many calls may be out in shares at a time, and the new share's id; and for each ended share its id and its unused calls. The counter
// knows an id while its share may be given back, which is eight of its leases long, and takes it only once. So a give-back that arrives twice or
// late, or whose counter was deleted in the meantime, gives nothing back.
//
// A share ends by the time the process should have used it twice. If a window forgets its unused calls at its end, a share has no more calls than
// the process needs for the rest of the window.
//
// It answers as the other scripts do, and adds: the room that is left; the calls of the share, or -1 if others have all calls that may be out; the
// length of the share in us; and the calls of others' shares that may still be given back. A strict window without
// room adds the elapsed time of its part and the count of each part, from which the process calculates when another number of calls fits.
func (w way) leaseScript() sendonce.Script {
	source := w.fill(`local key, n, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local want, calls, lease, most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
$look
` + clock + `local ended = {}
for i = 9, #ARGV, 2 do ended[ARGV[i]] = tonumber(ARGV[i + 1]) end
local kept, live, holders, others = {}, 0, 0, 0
for id, size, stamp, stop, long in string.gmatch(leases, '(%d+) (%d+) (%d+) (%d+) (%d+)') do
	local size, unused, stamp, stop, long = tonumber(size), ended[id], tonumber(stamp), tonumber(stop), tonumber(long)
	if unused then
		unused, changed = math.min(unused, size), true
		$give
	elseif math.abs(stop - now) <= 8 * long then
		kept[#kept + 1] = string.format('%s %d %d %d %d', id, size, stamp, stop, long)
		others = others + size
		if stop > now then live, holders = live + size, holders + 1 end
	else
		changed = true
	end
end
leases = table.concat(kept, ' ')
$weigh
local ok, share = n <= room, 0
local length = math.min(lease, $stays)
local crowded = want > 0 and (#kept >= 64 or most - live < 2)
if ok and not crowded and length > 0 then
	if $fades then want = math.floor(want * length / lease) end
	local part = math.floor(most / 8)
	part = math.max($stride, part, math.floor((most - live - math.max(7 - holders, 0) * part) / 2))
	share = math.min(want, part, room - n, most - live)
	length = math.min(length, math.max(lease / 8, 2 * share * lease / calls))
end
if share < 2 then
	share = 0
else
	if leases ~= '' then leases = leases .. ' ' end
	leases = leases .. string.format('%s %d %d %d %d', ARGV[8], share, $stamp, now + math.floor(length), lease)
end
local take = ok and n + share or 0
n = math.max(n, 1)
$put
local answer = {ok and 1 or 0, $says, room - take, crowded and -1 or share, math.floor(1000 * length), others}
$adds
return answer`)
	return sendonce.NewScript(source)
}
