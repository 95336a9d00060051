package engine

import (
	"bytes"
	"fmt"
	"strings"
)

// Redis's error texts, with their codes. A text that only one command uses stands beside that command.
const (
	errWrongType     = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errSyntax        = "ERR syntax error"
	errNotInteger    = "ERR value is not an integer or out of range"
	errNotFloat      = "ERR value is not a valid float"
	errOutOfRange    = "ERR index out of range"
	errPositive      = "ERR value is out of range, must be positive"
	errNoSuchKey     = "ERR no such key"
	errSameObject    = "ERR source and destination objects are the same"
	errInvalidDB     = "ERR DB index is out of range"
	errNoAuth        = "NOAUTH Authentication required."
	errWrongPass     = "WRONGPASS invalid username-password pair or user is disabled."
	errExecAbort     = "EXECABORT Transaction discarded because of previous errors."
	errOOM           = "OOM command not allowed when used memory > 'maxmemory'."
	errBusy          = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyKey       = "BUSYKEY Target key name already exists."
	errOverflow      = "ERR increment or decrement would overflow"
	errNaN           = "ERR increment would produce NaN or Infinity"
	errStringTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	errTimeout       = "ERR timeout is not a float or out of range"
	errTimeoutSign   = "ERR timeout is negative"
	errUnblocked     = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
)

// clip is how many bytes of the input an error repeats.
const clip = 128

func wrongArity(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

func invalidExpire(name string) string {
	return "ERR invalid expire time in '" + name + "' command"
}

func onlySubscribe(name string) string {
	return "ERR Can't execute '" + name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
}

// unknownCommand repeats the name, and the first 128 bytes of the arguments.
func unknownCommand(args [][]byte) string {
	var said strings.Builder
	for _, a := range args[1:] {
		if said.Len() >= clip {
			break
		}
		fmt.Fprintf(&said, "'%s' ", shown(a, clip-said.Len()))
	}
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", shown(args[0], clip), &said)
}

func unknownSubcommand(args [][]byte) string {
	return fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", shown(args[1], clip), strings.ToUpper(string(args[0])))
}

// wrongSubcommand is what some subcommands reply to too many arguments.
func wrongSubcommand(args [][]byte) string {
	return fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.", shown(args[1], clip), strings.ToUpper(string(args[0])))
}

// shown is what C's printf shows of b in n bytes: it ends at the first zero byte.
func shown(b []byte, n int) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return b[:min(len(b), n)]
}
