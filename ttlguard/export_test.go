package ttlguard

// Judges reports whether a command is one that can leave a key without an end.
func Judges(command string) bool { return effects[command] != nil }
