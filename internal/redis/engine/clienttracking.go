package engine

// The subcommands of CLIENT that set up tracking; tracking itself is in tracking.go.

func clientTrackingCommand(c *call) {
	var flags trackFlag
	var redirect int64
	var prefixes []string
	for o := c.options(3); o.more(); {
		switch {
		case o.word("REDIRECT", 1):
			if redirect != 0 {
				c.fail("ERR A client can only redirect to a single other client")
			}
			redirect = c.int(o.next())
			if c.e.sessions[redirect] == nil {
				c.fail("ERR The client ID you want redirect to does not exist")
			}
		case o.word("BCAST", 0):
			flags |= trackBcast
		case o.word("OPTIN", 0):
			flags |= trackOptIn
		case o.word("OPTOUT", 0):
			flags |= trackOptOut
		case o.word("NOLOOP", 0):
			flags |= trackNoLoop
		case o.word("PREFIX", 1):
			prefixes = append(prefixes, string(c.args[o.next()]))
		default:
			c.fail(errSyntax)
		}
	}
	switch {
	case c.failed:
		return
	case c.is(2, "ON"):
		if text := c.s.refusesTracking(flags, prefixes); text != "" {
			c.fail(text)
			return
		}
		c.e.track(c.s, flags, redirect, prefixes)
	case c.is(2, "OFF"):
		c.e.untrack(c.s)
	default:
		c.fail(errSyntax)
		return
	}
	c.ok()
}

// refusesTracking returns the error for options that contradict each other or the tracking already on; empty if there is none.
func (s *Session) refusesTracking(flags trackFlag, prefixes []string) string {
	switch was := s.track; {
	case flags&trackBcast == 0 && len(prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case was&trackOn != 0 && was&trackBcast != flags&trackBcast:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	case flags&trackBcast != 0 && flags&(trackOptIn|trackOptOut) != 0:
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case flags&trackOptIn != 0 && flags&trackOptOut != 0:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case flags&trackOptIn != 0 && was&trackOptOut != 0, flags&trackOptOut != 0 && was&trackOptIn != 0:
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	if a, b, existing, clash := s.clashing(prefixes); clash {
		other := "another provided"
		if existing {
			other = "an existing"
		}
		return "ERR Prefix '" + a + "' overlaps with " + other + " prefix '" + b + "'. Prefixes for a single client must not overlap."
	}
	return ""
}

func clientCachingCommand(c *call) {
	s := c.s
	switch {
	case !s.has(trackOptIn) && !s.has(trackOptOut):
		c.fail("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case c.is(2, "YES") && !s.has(trackOptIn):
		c.fail("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case c.is(2, "NO") && !s.has(trackOptOut):
		c.fail("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case c.is(2, "YES"), c.is(2, "NO"):
		s.track |= trackCaching
		c.ok()
	default:
		c.fail(errSyntax)
	}
}

func clientTrackinginfoCommand(c *call) {
	var flags []string
	for _, f := range []struct {
		is   bool
		name string
	}{
		{!c.s.has(trackOn), "off"}, {c.s.has(trackOn), "on"},
		{c.s.has(trackBcast), "bcast"},
		{c.s.has(trackOptIn), "optin"}, {c.s.has(trackOptIn) && c.s.has(trackCaching), "caching-yes"},
		{c.s.has(trackOptOut), "optout"}, {c.s.has(trackOptOut) && c.s.has(trackCaching), "caching-no"},
		{c.s.has(trackNoLoop), "noloop"}, {c.s.has(trackBroken), "broken_redirect"},
	} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	c.out.Map(3)
	c.out.BulkString("flags")
	c.out.Set(len(flags))
	for _, f := range flags {
		c.out.BulkString(f)
	}
	c.out.BulkString("redirect")
	c.out.Int(c.s.redirection())
	c.out.BulkString("prefixes")
	c.texts(c.s.prefixes)
}

// redirection is the session told instead, as CLIENT GETREDIR replies it: -1 without tracking.
func (t *trackingState) redirection() int64 {
	if !t.has(trackOn) {
		return -1
	}
	return t.redirect
}
