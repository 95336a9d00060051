package engine

import "testing"

func TestConnectionsAndRefusals(t *testing.T) {
	play(t, Options{}, `
		PING                         +PONG
		PING a                       "a"
		PING a b                     -ERR wrong number of arguments for 'ping' command
		ECHO "a b"                   "a b"
		FOO                          -ERR unknown command 'FOO', with args beginning with: 
		FOO a b                      -ERR unknown command 'FOO', with args beginning with: 'a' 'b' 
		SELECT 16                    -ERR DB index is out of range
		SELECT a                     -ERR value is not an integer or out of range
		SELECT 15                    +OK
		RESET                        +RESET
		AUTH x                       -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
		HELLO 4                      -NOPROTO unsupported protocol version
		HELLO 3 SETNAME              -ERR Syntax error in HELLO option 'SETNAME'
		HELLO 3                      {"server", "redis", "version", "8.0.2", "proto", :3, "id", :1, "mode", "standalone", "role", "master", "modules", []}
		TIME                         ["1800000000", "0"]
		@sleep 1
		TIME                         ["1800000000", "1000"]
		QUIT                         +OK
	`)
}

func TestPasswords(t *testing.T) {
	play(t, Options{Password: "p"}, `
		PING                         -NOAUTH Authentication required.
		FOO                          -ERR unknown command 'FOO', with args beginning with: 
		HELLO 3                      -NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
		AUTH q                       -WRONGPASS invalid username-password pair or user is disabled.
		AUTH other p                 -WRONGPASS invalid username-password pair or user is disabled.
		AUTH default p               +OK
		PING                         +PONG
		@c2 AUTH p                   +OK
		@c2 PING                     +PONG
	`)
}

func TestTransactions(t *testing.T) {
	play(t, Options{}, `
		EXEC                         -ERR EXEC without MULTI
		DISCARD                      -ERR DISCARD without MULTI
		MULTI                        +OK
		MULTI                        -ERR MULTI calls can not be nested
		WATCH k                      -ERR WATCH inside MULTI is not allowed
		PING                         +QUEUED
		SELECT 99                    +QUEUED
		PING b                       +QUEUED
		EXEC                         [+PONG, -ERR DB index is out of range, "b"]
		MULTI                        +OK
		FOO                          -ERR unknown command 'FOO', with args beginning with: 
		PING                         +QUEUED
		EXEC                         -EXECABORT Transaction discarded because of previous errors.
		MULTI                        +OK
		EXEC x                       -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
		EXEC                         -ERR EXEC without MULTI
		MULTI                        +OK
		DISCARD                      +OK
	`)
}
