package engine

import "testing"

func TestSubscribing(t *testing.T) {
	play(t, Options{}, `
		UNSUBSCRIBE                 ["unsubscribe", (nil), :0]
		UNSUBSCRIBE a b             ["unsubscribe", "a", :0] ["unsubscribe", "b", :0]
		SUBSCRIBE a b               ["subscribe", "a", :1] ["subscribe", "b", :2]
		SUBSCRIBE a                 ["subscribe", "a", :2]
		PSUBSCRIBE a*               ["psubscribe", "a*", :3]
		SSUBSCRIBE q                ["ssubscribe", "q", :1]
		PING                        ["pong", ""]
		GET k                       -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
		UNSUBSCRIBE                 ["unsubscribe", "a", :2] ["unsubscribe", "b", :1]
		PUNSUBSCRIBE                ["punsubscribe", "a*", :0]
		SUNSUBSCRIBE                ["sunsubscribe", "q", :0]
		PING                        +PONG
	`)
}

func TestMessagesReachEverySubscriber(t *testing.T) {
	play(t, Options{}, `
		@ca SUBSCRIBE news          ["subscribe", "news", :1]
		@cb PSUBSCRIBE n*           ["psubscribe", "n*", :1]
		@cc SSUBSCRIBE news         ["ssubscribe", "news", :1]
		PUBLISH news hello          :2
		@out a                      ["message", "news", "hello"]
		@out b                      ["pmessage", "n*", "news", "hello"]
		@out c
		SPUBLISH news shard         :1
		@out a
		@out c                      ["smessage", "news", "shard"]
		PUBLISH other x             :0
		PUBSUB CHANNELS             ["news"]
		PUBSUB CHANNELS x*          []
		PUBSUB SHARDCHANNELS        ["news"]
		PUBSUB NUMSUB news other    ["news", :1, "other", :0]
		PUBSUB SHARDNUMSUB news     ["news", :1]
		PUBSUB NUMPAT               :1
		PUBSUB CHANNELS a b         -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
		PUBSUB FOO                  -ERR unknown subcommand 'FOO'. Try PUBSUB HELP.
		@cb RESET                   +RESET
		PUBSUB NUMPAT               :0
		PUBLISH news hello          :1
	`)
}

// In RESP3 a subscriber may run any command, and its own messages follow the reply.
func TestSubscribersInRESP3(t *testing.T) {
	s := play(t, Options{}, ``)
	s.line("HELLO 3")
	for _, c := range [][2]string{
		{"SUBSCRIBE a", `>["subscribe", "a", :1]`},
		{"PING", "+PONG"},
		{"GET k", "null"},
		{"PUBLISH a m", `:1 >["message", "a", "m"]`},
		{"UNSUBSCRIBE", `>["unsubscribe", "a", :0]`},
		{"UNSUBSCRIBE", `>["unsubscribe", null, :0]`},
		{"MULTI", "+OK"},
		{"SUBSCRIBE z", "+QUEUED"},
		{"EXEC", `[>["subscribe", "z", :1]]`},
	} {
		if got := s.line(c[0]); got != c[1] {
			t.Errorf("%s: got %s, want %s", c[0], got, c[1])
		}
	}
}

func TestADroppedSessionIsNoSubscriber(t *testing.T) {
	s := play(t, Options{}, `
		@ca SUBSCRIBE news          ["subscribe", "news", :1]
		@ca PSUBSCRIBE n*           ["psubscribe", "n*", :2]
	`)
	s.Drop(s.session("a"))
	if got := s.line("PUBLISH news x"); got != ":0" {
		t.Errorf("PUBLISH after the subscriber left: %s", got)
	}
	if got := s.line("PUBSUB CHANNELS"); got != "[]" {
		t.Errorf("PUBSUB CHANNELS after the subscriber left: %s", got)
	}
}
