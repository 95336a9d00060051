package sliding

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Whatever needs Redis's clock, or a comparison, is a script. Each reads one key, decides, and writes it.

// lua returns the script of source, behind the functions that all scripts about an end need: they read the time, read and write the end in a record,
// and get a value that is not over. An end of zero means none, and a plain value has no room for one. A value that is over and still exists got more
// time from another program's EXPIRE. An end further away than the largest age was set before the clock went back, and is moved to the largest age
// from now.
func lua(source string) sendonce.Script {
	return sendonce.NewScript(strings.NewReplacer(
		"$header", strconv.Itoa(record.SessionLen), "$full", strconv.Itoa(record.OwnLifeLen),
		"$own", strconv.Itoa(record.SessionLen+1), "$oldest", strconv.Itoa(record.SessionLen+7),
		"$flag", strconv.Itoa(int(record.OwnLife)),
		"$before", strconv.Itoa(record.EndAt), "$from", strconv.Itoa(record.EndAt+1),
		"$to", strconv.Itoa(record.EndAt+6), "$after", strconv.Itoa(record.EndAt+7),
	).Replace(`local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function roomy(v) return #v >= $header and string.sub(v, 1, 6) == '\193mfy\1\4' end
local function number(v, from)
	local n = 0
	for i = from, from + 5 do n = n * 256 + string.byte(v, i) end
	return n
end
local function stop(v) return number(v, $from) end
local function own(v) return #v >= $full and roomy(v) and string.byte(v, 7) == $flag end
local function life(v, ttl, age)
	if own(v) then
		local t, a = number(v, $own), number(v, $oldest)
		if t > 0 then ttl = t end
		if a > 0 then age = a end
	end
	return ttl, age
end
local function stopping(v, at)
	local s = ''
	for i = 1, 6 do s = string.char(at % 256) .. s; at = math.floor(at / 256) end
	return string.sub(v, 1, $before) .. s .. string.sub(v, $after)
end
local function within(last, age)
	if age == 0 then return last end
	if last == 0 or last > now + age then return now + age end
	return last
end
local function get()
	local v = redis.call('GET', KEYS[1])
	if not v or not roomy(v) then return v end
	local last = stop(v)
	if last == 0 or last > now then return v end
	redis.call('DEL', KEYS[1])
	return false
end
` + source))
}

var (
	// touch  k, ttl, max age, below, read: renews k if less than below is left, never beyond its end. If the value has a life of its own, that
	// replaces the ttl and the max age, and below becomes the same share of it. It answers with the time left, how much of it is the value's below
	// or -1 if no access can renew the value any more, and with the value if read is set.
	touch = lua(`local v = get()
if not v then return false end
local ttl, age = life(v, tonumber(ARGV[1]), tonumber(ARGV[2]))
if age > 0 and not roomy(v) then return redis.error_reply('NOEND the value was not written by this store, and has no room for an end') end
local left, last = redis.call('PTTL', KEYS[1]), roomy(v) and stop(v) or 0
if last ~= within(last, age) then
	last = within(last, age)
	redis.call('SET', KEYS[1], stopping(v, last), 'KEEPTTL')
end
local below = tonumber(ARGV[3]) * ttl / tonumber(ARGV[1])
local to = now + ttl
if last > 0 then to = math.min(to, last) end
if left < 0 or left > ttl or now + left > to or left < below and now + left < to then
	redis.call('PEXPIREAT', KEYS[1], to)
	left = to - now
end
if last > 0 and now + left >= last then below = -1 end
return {left, below, ARGV[4] == '1' and v or ''}`)

	// write  k, record, ttl, max age, mode, head, length: writes the record in its mode, for the ttl or for a life of its own. It answers 1 or 0. A
	// swap
	// also answers 1 to its own repetition; the other modes are never repeated.
	write = lua(`local new, age, mode = ARGV[1], tonumber(ARGV[3]), ARGV[4]
local v = get()
if v and (mode == 'begin' or mode == 'carry') then return 0 end
if mode == 'swap' then
	if not v then return 0 end
	if roomy(v) and string.sub(v, 1, $before) == string.sub(new, 1, $before) then return 1 end
	if #v ~= tonumber(ARGV[6]) or string.sub(v, 1, #ARGV[5]) ~= ARGV[5] then return 0 end
end
local from, last = v, 0
if mode == 'carry' then from = new end
if mode == 'anew' then from = false end
if from and roomy(from) then last = stop(from) end
if from and own(from) and own(new) then
	new = string.sub(new, 1, $header) .. string.sub(from, $own, $full) .. string.sub(new, $full + 1)
end
local ttl, age = life(new, tonumber(ARGV[2]), age)
last = within(last, age)
local to = now + ttl
if last > 0 then to = math.min(to, last); new = stopping(new, last) end
redis.call('SET', KEYS[1], new, 'PXAT', to)
return 1`)
)

// renew  k, ttl, any: renews k. Without any, bytes that are not a store's record are returned and left alone. It answers 1, or nothing if the key
// does not exist.
var renew = sendonce.NewScript(`local v = redis.call('GET', KEYS[1])
if not v or ARGV[2] ~= '1' and string.sub(v, 1, 6) ~= '\193mfy\1\4' then return v end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`)

// mode says how write treats the value that is there.
type mode string

const (
	begin mode = "begin" // only where nothing is; the end is new
	keep  mode = "keep"  // whatever is there; its end and its life are inherited
	anew  mode = "anew"  // whatever is there; the end and the life are the record's
	carry mode = "carry" // only where nothing is; the record has its end
	swap  mode = "swap"  // only in place of what was read; its end and its life are inherited
)

// swap puts rec in place of old, and returns [mayfly.ErrExists] if something else is there now. If a reply is lost it sends the swap again. That is
// safe: a sending succeeds only where it finds old, and old never comes back, since ids tell the writes apart. What it then finds is rec, or old, or
// something else that may have replaced rec; in the last case the outcome is unknown. If the server does
// not answer the second sending either, swap gives up. Values without an id are sent once.
func (s *Store[K, V]) swap(ctx context.Context, full string, old, rec []byte) error {
	defer s.wrote(ctx, full)()
	send := func() error { return s.send(ctx, full, rec, swap, headOf(old), len(old)) }
	lost, sends := send(), 1
	if hasID(old) && hasID(rec) {
		sends = swaps
	}
	for try := 1; errors.Is(lost, mayfly.ErrUnknownOutcome) && try < sends && sendonce.Rest(ctx, try) == nil; try++ {
		switch err := send(); {
		case err == nil:
			return nil
		case errors.Is(err, mayfly.ErrExists), errors.Is(err, nodes.ErrSlow), errors.Is(err, nodes.ErrOpen), errors.Is(err, nodes.ErrCrowded):
			return lost
		}
	}
	return lost
}

// swaps bounds the sendings of a swap whose replies are lost: as many as go-redis makes of other commands by default.
const swaps = 4

// write puts rec in a mode other than swap, and returns [mayfly.ErrExists] if the mode forbids that.
func (s *Store[K, V]) write(ctx context.Context, full string, rec []byte, m mode) error {
	return s.lookAfter(ctx, full, rec, s.send(ctx, full, rec, m, nil, 0))
}

// send sends rec once.
func (s *Store[K, V]) send(ctx context.Context, full string, rec []byte, m mode, head []byte, length int) error {
	done, err := write.RunOnce(ctx, s.redis, full, rec, s.ttl, s.opt.MaxAge.Milliseconds(), string(m), head, length).Int64()
	if err == nil && done != 1 {
		return mayfly.ErrExists
	}
	return sendonce.Outcome(ctx, s.redis, full, err)
}

// scripted reports whether values can have an end, or a life of their own, which only the scripts respect.
func (s *Store[K, V]) scripted() bool { return s.opt.MaxAge > 0 || s.room.MaxTTL > 0 }

// readAged reads and renews a value by a script.
func (s *Store[K, V]) readAged(ctx context.Context, full string) (raw []byte, life time.Duration, err error) {
	reply, err := touch.Run(ctx, s.redis, full, s.touchArgs(true)...).Slice()
	if err != nil {
		return nil, 0, err
	}
	if len(reply) == 3 {
		left, ok1 := reply[0].(int64)
		below, ok2 := reply[1].(int64)
		value, ok3 := reply[2].(string)
		if life = millis(left); below >= 0 { // an access can renew it, and has to once below is left
			life = millis(left - below)
		}
		if ok1 && ok2 && ok3 {
			return []byte(value), max(life, 0), nil
		}
	}
	return nil, 0, fmt.Errorf("a script answered %v", reply)
}

func (s *Store[K, V]) touchArgs(read bool) []any {
	below := min(s.below, s.room.TTL+time.Millisecond)
	return []any{s.room.TTL.Milliseconds(), s.opt.MaxAge.Milliseconds(), below.Milliseconds(), read}
}
