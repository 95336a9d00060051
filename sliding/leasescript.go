package sliding

import "github.com/mayflycache/mayfly/internal/client/sendonce"

// leaseReply is how many numbers it answers, at least.
const leaseReply = 8

// leaseScript returns the script of one trip: it takes back what is unused of shares that have ended, counts n calls of one key, and beside them a share
// of what is left.
//
// Its arguments are n, limit, window, and: how many calls the share should have, how many the process is asked for in the time of a lease, how long that is in
// ms, how many calls may be out in shares at a time, the new share's id, and of each share that ended its id and what is unused of it. An id is known as
// long as its share may be given back, eight of the leases it was taken with, and once only: so what comes twice, or late, or of a counter that was
// deleted meanwhile, gives nothing back.
//
// A share ends when the process should have used it twice. One of a window that forgets what is unused at its end has no more than the rest of the
// window takes.
//
// It answers as the others do, and: the room that is left, how many calls the share has, or -1 if others have all that may be out, for how many
// us, and how many calls of others' shares may still be given back. A strict window that
// leaves no room adds how far its part is, and what counts in each part, by which the process tells when another number of calls fits.
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
