package ttlvet

import "strings"

// verdict is what a call does to the TTL of its key.
type verdict int

const (
	harmless   verdict = iota
	depends            // the key has a TTL if it had one before: a new one has none
	leavesNone         // in any case, whatever the key had before
	ends               // the key has a TTL afterwards
	removes            // the key is gone
	scripted           // unknown: the script may do anything
)

// command describes a method of go-redis. Indexes of arguments count from ctx, which is 0.
type command struct {
	does  verdict // what the call does if it gets no expiration
	key   int     // the argument that is the key, or contains it
	ttl   int     // the argument with the expiration, a Duration or a struct; 0 if there is none
	field string  // the field with the key, if the argument is a struct
	many  int     // if not 0: every many-th argument from key on is a key
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

	// No expiration: the value is replaced and its TTL lost, or only the TTL is removed.
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

	// The key gets a TTL. ExpireXX and ExpireGT are missing on purpose: they do nothing to a key without one.
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
