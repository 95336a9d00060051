package ttlvet

import "strings"

// verdict is what a call does to the TTL of its key.
type verdict int

const (
	harmless   verdict = iota
	depends            // the key has a TTL if it had one before: a new one has none
	leavesNone         // whatever it had before
	ends               // it has one afterwards
	removes            // it is gone
	scripted           // whoever wrote the script knows
)

// command is what is known of a method of go-redis. The index of an argument counts ctx, which is 0.
type command struct {
	does  verdict // without an expiration, if it takes one
	key   int     // the argument that is its key, or holds it
	ttl   int     // the argument that says how long: a Duration, or a struct; 0 if none does
	field string  // of a struct at key, which is the key
	many  int     // from key on each many-th argument is a key
}

// methods are those that write keys or give them a TTL. TestEveryMethod holds them to what ttlguard knows of commands.
var methods = []struct {
	command
	names string
}{
	// An expiration is among the arguments.
	{command{does: leavesNone, key: 1, ttl: 3}, "Set SetNX SetXX SetEx SetArgs"},
	{command{does: leavesNone, key: 1, ttl: 4}, "SetIFEQ SetIFEQGet SetIFNE SetIFNEGet SetIFDEQ SetIFDEQGet SetIFDNE SetIFDNEGet"},
	{command{does: leavesNone, key: 1, ttl: 2}, "GetEx Restore RestoreReplace"},
	{command{does: leavesNone, key: 2, ttl: 1, many: 2}, "MSetEX"},
	{command{does: depends, key: 1, ttl: 2}, "IncrEXInt IncrEXFloat"},

	// None is: the value is replaced, and the TTL with it, or the TTL alone is taken.
	{command{does: leavesNone, key: 1}, "SetFromBuffer GetSet Persist SDiffStore SInterStore SUnionStore ZDiffStore ZInterStore ZUnionStore ZRangeStore"},
	{command{does: leavesNone, key: 1}, "BitOpAnd BitOpOr BitOpXor BitOpNot BitOpDiff BitOpDiff1 BitOpAndOr BitOpOne"},
	{command{does: leavesNone, key: 1, many: 2}, "MSet MSetNX"},
	{command{does: leavesNone, key: 2}, "SortStore GeoSearchStore"},
	{command{does: leavesNone, key: 4, field: "Store"}, "GeoRadiusStore"},
	{command{does: leavesNone, key: 3, field: "Store"}, "GeoRadiusByMemberStore"},

	// The value is altered, or created without a TTL.
	{command{does: depends, key: 1}, "Append Incr IncrBy IncrByFloat Decr DecrBy SetRange SetBit BitField PFAdd PFMerge"},
	{command{does: depends, key: 1}, "HSet HMSet HSetNX HIncrBy HIncrByFloat HSetEX HSetEXWithArgs HImportSet"},
	{command{does: depends, key: 1}, "LPush RPush SAdd ZAdd ZAddNX ZAddLT ZAddGT ZAddArgs ZAddArgsIncr ZIncrBy GeoAdd XGroupCreateMkStream"},
	{command{does: depends, key: 1}, "VAdd VAddWithArgs ARSet ARMSet ARInsert ARRing"},
	{command{does: depends, key: 2}, "SMove LMove LMoveM BLMove BLMoveM RPopLPush BRPopLPush"},
	{command{does: depends, key: 1, field: "Stream"}, "XAdd"},

	// A TTL is given. ExpireXX and ExpireGT are not here: they leave a key alone that has none.
	{command{does: ends, key: 1}, "Expire PExpire ExpireAt PExpireAt ExpireNX ExpireLT"},
	{command{does: removes, key: 1, many: 1}, "Del Unlink"},

	{command{does: scripted, key: 2}, "Eval EvalSha FCall Run"},
}

var (
	commands = map[string]command{} // by method
	raw      = map[string]string{}  // methods by the first word of Do, for those whose arguments are the same: "incr" is Incr
)

func init() {
	for _, m := range methods {
		for name := range strings.FieldsSeq(m.names) {
			commands[name] = m.command
			if m.ttl == 0 && m.key == 1 && m.field == "" && m.does != scripted {
				raw[strings.ToLower(name)] = name
			}
		}
	}
	raw["set"], raw["setnx"] = "Set", "SetNX"
}
