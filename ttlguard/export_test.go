package ttlguard

import "github.com/redis/go-redis/v9"

// Judge tells what the guard thinks of each key that cmds may write: "safe", "depends" or "leaves none".
func Judge(cmds []redis.Cmder, tell func(key, verdict string)) {
	for _, j := range judge(cmds) {
		tell(j.key, j.verdict.String())
	}
}

// Judges reports whether a command is one that can leave a key without an end.
func Judges(command string) bool { return effects[command] != nil }
