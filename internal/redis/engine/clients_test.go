package engine

import (
	"regexp"
	"strings"
	"testing"
)

func TestClientNamesAndSwitches(t *testing.T) {
	play(t, Options{}, `
		CLIENT GETNAME                  (nil)
		CLIENT SETNAME "a b"            -ERR Client names cannot contain spaces, newlines or special characters.
		CLIENT SETNAME x                +OK
		CLIENT GETNAME                  "x"
		CLIENT SETNAME ""               +OK
		CLIENT GETNAME                  (nil)
		CLIENT SETINFO LIB-NAME ab      +OK
		CLIENT SETINFO lib-ver "1 2"    -ERR lib-ver cannot contain spaces, newlines or special characters.
		CLIENT SETINFO foo x            -ERR Unrecognized option 'foo'
		CLIENT NO-TOUCH on              +OK
		CLIENT NO-TOUCH maybe           -ERR syntax error
		CLIENT NO-EVICT on              +OK
		CLIENT REPLY foo                -ERR syntax error
		CLIENT REPLY OFF
		PING
		CLIENT REPLY ON                 +OK
		CLIENT REPLY SKIP
		PING
		PING                            +PONG
		CLIENT FOO                      -ERR unknown subcommand 'FOO'. Try CLIENT HELP.
		CLIENT                          -ERR wrong number of arguments for 'client' command
		CLIENT ID x                     -ERR wrong number of arguments for 'client|id' command
		CLIENT LIST TYPE foo            -ERR Unknown client type 'foo'
		CLIENT LIST ID x                -ERR Invalid client ID
		CLIENT LIST ID 99               ""
		CLIENT LIST TYPE pubsub         ""
		CLIENT LIST FOO                 -ERR syntax error
		CLIENT LIST ID                  -ERR syntax error
	`)
}

func TestClientKill(t *testing.T) {
	s := play(t, Options{}, `
		CLIENT KILL foo                     -ERR No such client
		CLIENT KILL ID abc                  -ERR client-id should be greater than 0
		CLIENT KILL ID 0                    -ERR client-id should be greater than 0
		CLIENT KILL ID 99999                :0
		CLIENT KILL TYPE foo                -ERR Unknown client type 'foo'
		CLIENT KILL TYPE normal foo         -ERR syntax error
		CLIENT KILL USER nobody             -ERR No such user 'nobody'
		CLIENT KILL USER default SKIPME foo  -ERR syntax error
		CLIENT KILL MAXAGE a                -ERR maxage is not an integer or out of range
		CLIENT KILL MAXAGE 100000           :0
		@ca SUBSCRIBE news                  ["subscribe", "news", :1]
		@cb PING                            +PONG
		CLIENT KILL TYPE pubsub             :1
		CLIENT KILL SKIPME yes              :1
	`)
	for _, name := range []string{"a", "b"} {
		if !s.session(name).Closing() {
			t.Errorf("session %s lives", name)
		}
	}
	me := s.session("")
	if out := s.Do(s.now, me, [][]byte{[]byte("CLIENT"), []byte("KILL"), []byte(me.opened.Addr)}); out != Close || s.take("") != "+OK" {
		t.Errorf("killing oneself by address: outcome %v", out)
	}
}

func TestClientUnblock(t *testing.T) {
	s := play(t, Options{}, `
		CLIENT ID                   :1
		@ca CLIENT ID               :2
		CLIENT UNBLOCK 2            :0
		CLIENT UNBLOCK 999          :0
		CLIENT UNBLOCK abc          -ERR value is not an integer or out of range
		CLIENT UNBLOCK 3 foo        -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
	`)
	_ = s
}

func TestClientList(t *testing.T) {
	s := play(t, Options{}, `
		CLIENT SETNAME me           +OK
		CLIENT SETINFO LIB-NAME go  +OK
		CLIENT NO-TOUCH ON          +OK
		@ca SUBSCRIBE news          ["subscribe", "news", :1]
		@sleep 5000
	`)
	got := s.line("CLIENT LIST")
	for _, want := range []string{
		`id=1 addr=127\.0\.0\.1:40000 laddr= fd=8 name=me age=5 idle=0 flags=T db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 .* cmd=client\|list user=default redir=-1 resp=2 lib-name=go lib-ver= io-thread=0`,
		`id=2 addr=127\.0\.0\.1:40001 laddr= fd=8 name= age=5 idle=5 flags=P db=0 sub=1 psub=0 ssub=0 multi=-1 watch=0 .* cmd=subscribe user=default redir=-1 resp=2 lib-name= lib-ver= io-thread=0`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("CLIENT LIST lacks %s in\n%s", want, strings.ReplaceAll(got, `\n`, "\n"))
		}
	}
	if got := s.line("CLIENT LIST TYPE pubsub"); strings.Contains(got, "id=1 ") || !strings.Contains(got, "id=2 ") {
		t.Errorf("CLIENT LIST TYPE pubsub: %s", got)
	}
	if got := s.line("CLIENT INFO"); !strings.Contains(got, "id=1 ") || strings.Contains(got, "id=2 ") {
		t.Errorf("CLIENT INFO: %s", got)
	}
}
