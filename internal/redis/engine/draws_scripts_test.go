package engine

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
)

// Scripts that call the command given to them.
var callingScripts = []string{
	"return redis.call(unpack(ARGV))",
	"return redis.pcall(unpack(ARGV))",
	"redis.setresp(3) return redis.call(unpack(ARGV))",
	"redis.call(unpack(ARGV)) return redis.status_reply('DONE')",
	"local a = redis.pcall(unpack(ARGV)) if type(a) == 'table' and a.err then return {a.err} end return {1, a}",
	"return {redis.call(unpack(ARGV)), redis.call('EXISTS', 'k0')}",
	"#!lua\nreturn redis.call(unpack(ARGV))",
	"#!lua flags=no-writes\nreturn redis.call(unpack(ARGV))",
}

// drawScripts draws a script, usually one around a command of another family.
func drawScripts(r *dice) []string {
	text := one(r, scriptsBeside...)
	if _, apart := scriptsApart[text]; apart || strings.Contains(text, ".err") { // Lua's own messages, which depend on the machine
		text = "return 1"
	}
	digest := fmt.Sprintf("%x", sha1.Sum([]byte(one(r, "return 1", "return {KEYS[1],ARGV[1],#KEYS,#ARGV}", "return redis.call('get',KEYS[1])"))))
	arguments := func() []string {
		return cat([]string{one(r, "0", "1", "1", "2", "-1", "x", "9")}, some(r, "k0", "k1"), some(r, "a", "7"), some(r, "b"))
	}
	switch r.IntN(16) {
	case 0:
		return cat([]string{one(r, "EVAL", "EVAL_RO"), text}, arguments())
	case 1:
		return cat([]string{one(r, "EVALSHA", "EVALSHA_RO"), digest}, arguments())
	case 2:
		return []string{"SCRIPT", "LOAD", one(r, "return 1", "return {KEYS[1],ARGV[1],#KEYS,#ARGV}", "return redis.call('get',KEYS[1])", "if then", "")}
	case 3:
		return cat([]string{"SCRIPT", "EXISTS", digest}, some(r, "x", digest))
	case 4:
		if r.IntN(4) == 0 {
			return cat([]string{"SCRIPT", "FLUSH"}, some(r, "ASYNC", "SYNC", "FOO"))
		}
		return cat([]string{"SCRIPT", one(r, "KILL", "LOAD", "EXISTS", "FOO")}, some(r, "return 2"))
	case 5:
		list := drawLists(r)
		return cat([]string{"EVAL", "return cjson.encode(redis.call(unpack(ARGV)))", "0"}, list)
	}
	f := &families[r.IntN(len(families))]
	for f.mixed {
		f = &families[r.IntN(len(families))]
	}
	args := f.draw(r)
	keys := []string{}
	if r.IntN(3) > 0 {
		keys = append(keys, "k"+strconv.Itoa(r.IntN(3)))
	}
	return cat([]string{one(r, "EVAL", "EVAL", "EVAL", "EVAL_RO"), one(r, callingScripts...), strconv.Itoa(len(keys))}, keys, args)
}
