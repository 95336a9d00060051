package engine

// drawPayloads draws DUMP, or RESTORE of either server's last reply to it.
func drawPayloads(r *dice) []string {
	key := one(r, shared...)
	if r.IntN(2) == 0 {
		return []string{"DUMP", key}
	}
	payload := one(r, "$DUMP", "$REALDUMP", "$DUMP", "$REALDUMP", "$DUMP", "$REALDUMP", "", "x", "\x00\x01a\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	ttl := one(r, "0", "0", milliseconds(r))
	if len(ttl) == len("9223372036854775807") { // Redis adds it to the present time without a check
		ttl = "-1"
	}
	options := cat(some(r, "REPLACE", "REPLACE", "ABSTTL", "FOO"), pair(r, "IDLETIME", "0", "1000", "-1", "x"), pair(r, "FREQ", "0", "255", "256", "x"), some(r, "REPLACE"))
	if r.IntN(5) == 0 {
		return cat([]string{"RESTORE", key, unixMilliseconds(r), payload, "ABSTTL"}, options)
	}
	return cat([]string{"RESTORE", key, ttl, payload}, options)
}
