package lease

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// The scripts: each reads one key, decides, and writes it. All a comparison needs is the bytes up to the id, and the length.
var (
	// swap  k, head, length, new, ms: new in place of what has this head and length. Repeated, it knows its own work.
	swap = newScript(`local v = redis.call('GET', KEYS[1])
if v and #v == tonumber(ARGV[2]) and string.sub(v, 1, #ARGV[1]) == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
	return 1
end
return v == ARGV[3] and 1 or 0`)

	// keep  k, token, ms: prolongs it if it is still this one.
	keep = newScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`)

	// drop  k, token: removes it if it is still this one.
	drop = newScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

	// fillPlain  sibling, k, token, what k held ('-' nothing, '+' and the bytes), new, ms: ends the lease, and puts new if
	// the lease was still ours and k holds what it held.
	fillPlain = newScript(`local v = redis.call('GET', KEYS[2])
local mine = redis.call('GET', KEYS[1]) == ARGV[1]
if mine then redis.call('DEL', KEYS[1]) end
if mine and (v and '+' .. v or '-') == ARGV[2] then
	redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
	return 1
end
return v == ARGV[3] and 1 or 0`)
)

// script is Lua and the name under which a server that has seen it knows it.
type script struct{ source, sha string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// call is one script on its way.
type call struct {
	script script
	keys   []string
	args   []any
}

func (c call) command(ctx context.Context, name, script string) *redis.Cmd {
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	args = append(args, name, script, len(c.keys))
	for _, key := range c.keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, c.args...)...)
}

// run runs calls on s in one trip, in a second one those whose script s does not have. It returns for each whether
// its script answered 1.
func (s *server) run(ctx context.Context, calls ...call) ([]bool, []error) {
	did, errs := make([]bool, len(calls)), make([]error, len(calls))
	trip := func(name string, mine []int) {
		cmds := make([]redis.Cmder, len(mine))
		for n, i := range mine {
			script := calls[i].script.sha
			if name == "eval" {
				script = calls[i].script.source
			}
			cmds[n] = calls[i].command(ctx, name, script)
		}
		lost := s.do(ctx, cmds...)
		for n, i := range mine {
			if did[i], errs[i] = false, lost; lost == nil {
				did[i], errs[i] = one(cmds[n].(*redis.Cmd))
			}
		}
	}
	all := make([]int, len(calls))
	for i := range all {
		all[i] = i
	}
	trip("evalsha", all)
	if missing := slices.DeleteFunc(all, func(i int) bool { return !redis.HasErrorPrefix(errs[i], "NOSCRIPT") }); len(missing) > 0 {
		trip("eval", missing)
	}
	return did, errs
}

// one reads a script's answer.
func one(cmd *redis.Cmd) (bool, error) {
	reply, err := cmd.Result()
	if err != nil {
		return false, err
	}
	n, ok := reply.(int64)
	if !ok {
		return false, fmt.Errorf("a script answered %T", reply)
	}
	return n == 1, nil
}

func (s *server) run1(ctx context.Context, c call) (bool, error) {
	did, errs := s.run(ctx, c)
	return did[0], errs[0]
}
