package engine

import (
	"strings"
	"testing"
)

// expect plays pairs of a command and its reply. The reply to HELLO, empty here, is checked elsewhere.
func (s *stage) expect(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		got := strings.TrimSpace(s.line(pairs[i]))
		if strings.HasSuffix(pairs[i], "HELLO 3") {
			continue
		}
		if got != pairs[i+1] {
			t.Errorf("%s\n got %s\nwant %s", pairs[i], got, pairs[i+1])
		}
	}
}

func TestTrackingOptions(t *testing.T) {
	play(t, Options{}, `
		CLIENT TRACKING on prefix a             -ERR PREFIX option requires BCAST mode to be enabled
		CLIENT TRACKING on bcast optin          -ERR OPTIN and OPTOUT are not compatible with BCAST
		CLIENT TRACKING on optin optout         -ERR You can't specify both OPTIN mode and OPTOUT mode
		CLIENT TRACKING maybe                   -ERR syntax error
		CLIENT TRACKING on foo                  -ERR syntax error
		CLIENT TRACKING on bcast prefix         -ERR syntax error
		CLIENT TRACKING on redirect abc         -ERR value is not an integer or out of range
		CLIENT TRACKING on redirect 999         -ERR The client ID you want redirect to does not exist
		CLIENT TRACKING off redirect 999        -ERR The client ID you want redirect to does not exist
		CLIENT CACHING yes                      -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
		CLIENT GETREDIR                         :-1
		CLIENT TRACKING ON BCAST PREFIX a       +OK
		CLIENT TRACKING ON BCAST PREFIX ab      -ERR Prefix 'ab' overlaps with an existing prefix 'a'. Prefixes for a single client must not overlap.
		CLIENT TRACKING ON BCAST PREFIX b PREFIX b  -ERR Prefix 'b' overlaps with another provided prefix 'b'. Prefixes for a single client must not overlap.
		CLIENT TRACKING ON BCAST PREFIX b       +OK
		CLIENT TRACKING ON                      -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
		CLIENT TRACKINGINFO                     ["flags", ["on", "bcast"], "redirect", :0, "prefixes", ["a", "b"]]
		CLIENT TRACKING OFF                     +OK
		CLIENT TRACKING ON OPTIN                +OK
		CLIENT TRACKING ON OPTOUT               -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
		CLIENT CACHING NO                       -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
		CLIENT CACHING maybe                    -ERR syntax error
		CLIENT CACHING YES                      +OK
		CLIENT TRACKINGINFO                     ["flags", ["on", "optin", "caching-yes"], "redirect", :0, "prefixes", []]
		PING                                    +PONG
		CLIENT TRACKINGINFO                     ["flags", ["on", "optin"], "redirect", :0, "prefixes", []]
		CLIENT GETREDIR                         :0
	`)
}

func TestOptIn(t *testing.T) {
	newStage(Options{}).expect(t,
		"@ca CLIENT TRACKING ON OPTIN", "+OK",
		"@ca HELLO 3", "",
		"@ca GET k", "null",
		"SET k 1", "+OK", "@out a", "",
		"@ca CLIENT CACHING YES", "+OK",
		"@ca GET k", `"1"`,
		"@ca GET j", "null",
		"SET k 2", "+OK", "@out a", `>["invalidate", ["k"]]`,
		"SET j 2", "+OK", "@out a", "",
	)
}

func TestOptInReachesThroughATransaction(t *testing.T) {
	newStage(Options{}).expect(t,
		"@ca HELLO 3", "", "@ca CLIENT TRACKING ON OPTIN", "+OK",
		"@ca CLIENT CACHING YES", "+OK",
		"@ca MULTI", "+OK", "@ca GET k", "+QUEUED", "@ca GET j", "+QUEUED", "@ca EXEC", "[null, null]",
		"@ca GET i", "null",
		"MSET i 1 j 1 k 1", "+OK", "@out a", `>["invalidate", ["j"]] >["invalidate", ["k"]]`,
	)
}

func TestOptOut(t *testing.T) {
	newStage(Options{}).expect(t,
		"@ca HELLO 3", "", "@ca CLIENT TRACKING ON OPTOUT", "+OK",
		"@ca CLIENT CACHING NO", "+OK",
		"@ca GET k", "null", "@ca GET j", "null",
		"MSET j 1 k 1", "+OK", "@out a", `>["invalidate", ["j"]]`,
	)
}

func TestOwnWrites(t *testing.T) {
	newStage(Options{}).expect(t,
		"@ca HELLO 3", "", "@ca CLIENT TRACKING ON", "+OK",
		"@ca GET k", "null", "@ca SET k 1", `+OK >["invalidate", ["k"]]`,
		"@ca CLIENT TRACKING ON NOLOOP", "+OK",
		"@ca GET k", `"1"`, "@ca SET k 2", "+OK", "@out a", "",
		"@ca GET k", `"2"`, "SET k 3", "+OK", "@out a", `>["invalidate", ["k"]]`,
	)
}

func TestBroadcast(t *testing.T) {
	newStage(Options{}).expect(t,
		"@ca HELLO 3", "", "@ca CLIENT TRACKING ON BCAST PREFIX c: PREFIX d:", "+OK",
		"@cb HELLO 3", "", "@cb CLIENT TRACKING ON BCAST NOLOOP", "+OK",
		// One message per command, each key once, in sorted order.
		"MSET c:2 v c:1 v c:2 w e v", "+OK",
		"@out a", `>["invalidate", ["c:1", "c:2"]]`,
		"@out b", `>["invalidate", ["c:1", "c:2", "e"]]`,
		"@cb SET d:1 v", "+OK",
		"@out a", `>["invalidate", ["d:1"]]`, "@out b", "",
		"SELECT 3", "+OK", "SET c:1 v", "+OK", "@out a", `>["invalidate", ["c:1"]]`, // without the number of a database
		"@out b", `>["invalidate", ["c:1"]]`,
		"FLUSHDB", "+OK", "@out a", `>["invalidate", null]`, "@out b", `>["invalidate", null]`,
		"@ca CLIENT TRACKING OFF", "+OK", "SET c:1 v", "+OK", "@out a", "",
	)
}

func TestRedirect(t *testing.T) {
	s := newStage(Options{})
	s.expect(t, "@cb SUBSCRIBE __redis__:invalidate", `["subscribe", "__redis__:invalidate", :1]`)
	s.expect(t,
		"@ca CLIENT TRACKING ON REDIRECT 1", "+OK",
		"@ca GET k", "(nil)", "SET k v", "+OK",
		"@out b", `["message", "__redis__:invalidate", ["k"]]`,
		"@ca GET k", `"v"`, "FLUSHALL", "+OK",
		"@out b", `["message", "__redis__:invalidate", (nil)]`,
		"@ca GET k", "(nil)",
		"@ca HELLO 3", "",
	)
	s.Drop(s.session("b"))
	s.expect(t,
		"SET k v", "+OK", "@out a", `>["tracking-redir-broken", :1]`,
		"@ca CLIENT TRACKINGINFO", `{"flags", ~["on", "broken_redirect"], "redirect", :1, "prefixes", []}`,
	)
}

func TestTheTableOfReadersIsBounded(t *testing.T) {
	s := newStage(Options{})
	s.settings.trackingKeys = 3
	s.expect(t, "@ca HELLO 3", "", "@ca CLIENT TRACKING ON", "+OK", "@ca MGET a b c", "[null, null, null]")
	if got := s.line("@ca GET d"); !strings.HasPrefix(got, "null >[\"invalidate\"") {
		t.Errorf("the fourth key took no other's place: %s", got)
	}
	if len(s.tracking.readers) != 3 || s.tracking.items != 3 {
		t.Errorf("the table has %d keys and %d items, want 3 and 3", len(s.tracking.readers), s.tracking.items)
	}
}
