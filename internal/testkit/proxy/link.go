package proxy

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// link is the connection of one client, and the connection to the server that was made for it. The latter ends when the client is gone and
// everything it sent has been delivered and answered.
type link struct {
	p      *Proxy
	number int
	client net.Conn
	server net.Conn

	mu     sync.Mutex // guards the rest, and writing to both ends
	out    []*request // sent by the client and not yet passed to the server, in order: the first is held
	asked  []*request // passed to the server and not yet answered
	back   []*request // answered, and the reply not yet passed to the client: the first is held
	gone   bool       // the client has gone
	dead   bool       // the server has gone
	silent bool       // the client gets nothing more
	opaque bool       // it has subscribed: replies cannot be matched with requests any more

	transaction [][]string // the commands since MULTI, MULTI included; nil outside. Used only by requests
}

// request is one command, and later its reply; or a push, which answers no command.
type request struct {
	bytes []byte
	fault *Fault   // usually nil
	ends  []*Fault // done when this one is answered
}

// requests reads what the client sends until it is gone.
func (l *link) requests() {
	var in resp.Parser
	for {
		args, err := in.Next()
		if err == nil && args == nil {
			l.advance()
			_, err = in.Fill(l.client)
		}
		if err != nil {
			break
		}
		if args != nil {
			l.take(args)
		}
	}
	l.client.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	l.settleLocked()
}

func (l *link) take(args [][]byte) {
	words := make([]string, len(args))
	var w resp.Writer
	w.Array(len(args))
	for i, arg := range args {
		words[i] = string(arg)
		w.Bulk(arg)
	}
	words[0] = strings.ToLower(words[0])
	r := &request{bytes: bytes.Clone(w.Bytes()), fault: l.fault(words)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(l.out, r)
	if strings.HasSuffix(words[0], "subscribe") || words[0] == "monitor" {
		l.opaque = true
	}
}

// fault returns the fault for a command. The commands of a transaction pass; their faults apply to its EXEC.
func (l *link) fault(words []string) *Fault {
	commands := [][]string{words}
	switch {
	case words[0] == "multi":
		l.transaction = commands
	case words[0] == "exec" && l.transaction != nil:
		commands = append(l.transaction[1:], words)
		l.transaction = nil
	case words[0] == "discard":
		l.transaction = nil
	case l.transaction != nil:
		l.transaction = append(l.transaction, words)
		return nil
	}
	l.mu.Lock()
	behind := slices.ContainsFunc(l.out, func(r *request) bool { return r.fault.blocks(hold, late) })
	l.mu.Unlock()
	return l.p.meet(l, commands, behind)
}

// advance passes on what is no longer held, in both directions.
func (l *link) advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var send []byte
	var freed []*Fault
	for len(l.out) > 0 && !l.out[0].fault.blocks(hold, late) {
		r := l.out[0]
		l.out = l.out[1:]
		if r.fault != nil && r.fault.does == cutBefore {
			l.client.Close()
			endAll(append(l.out, r))
			l.out = nil
			break
		}
		if r.fault != nil && (r.fault.does == hold || r.fault.does == late) {
			freed = append(freed, r.fault)
		}
		if len(l.out) == 0 || l.out[0].fault.blocks(hold, late) {
			r.ends = freed
		}
		l.asked = append(l.asked, r)
		send = append(send, r.bytes...)
	}
	if len(send) > 0 {
		l.server.Write(send) // an error shows up where replies are read
	}
	l.answerLocked()
	l.settleLocked()
}

// settleLocked ends a link that has nothing left to do.
func (l *link) settleLocked() {
	if l.dead {
		endAll(l.out, l.asked, l.back)
		l.out, l.asked, l.back = nil, nil, nil
	}
	if l.gone && (l.opaque || len(l.out) == 0 && len(l.asked) == 0) {
		l.server.Close()
	}
}

// replies reads the server's answers until it is gone.
func (l *link) replies() {
	var raw bytes.Buffer // what was read since the beginning of the next reply
	in := resp.NewReader(io.TeeReader(l.server, &raw))
	for {
		v, err := in.Read()
		if err != nil {
			break
		}
		l.answered(v.Kind == '>', bytes.Clone(raw.Next(raw.Len()-in.Buffered())))
	}
	l.server.Close()
	l.client.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.settleLocked()
}

func (l *link) answered(push bool, bytes []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if push || l.opaque || len(l.asked) == 0 {
		l.back = append(l.back, &request{bytes: bytes})
	} else {
		r := l.asked[0]
		l.asked = l.asked[1:]
		r.bytes = bytes
		if r.fault != nil {
			r.fault.reply = string(bytes)
		}
		l.back = append(l.back, r)
	}
	l.answerLocked()
	l.settleLocked()
}

// answerLocked passes the replies that are not held to the client.
func (l *link) answerLocked() {
	for len(l.back) > 0 && !l.back[0].fault.blocks(holdReply) {
		r := l.back[0]
		l.back = l.back[1:]
		cut := false
		if r.fault != nil {
			switch r.fault.does {
			case dropReply:
				l.silent = true
			case cutAfter:
				r.bytes, cut = nil, true
			case truncate:
				r.bytes, cut = r.bytes[:min(r.fault.bytes, len(r.bytes))], true
			}
		}
		if !l.silent {
			l.client.Write(r.bytes) // an error means that the client has left
		}
		if cut {
			l.client.Close()
		}
		if r.fault != nil && r.fault.does != hold && r.fault.does != late {
			r.fault.end()
		}
		for _, f := range r.ends {
			f.end()
		}
	}
}

// endAll ends the faults of requests that will not get any further.
func endAll(lists ...[]*request) {
	for _, list := range lists {
		for _, r := range list {
			if r.fault != nil {
				r.fault.end()
			}
			for _, f := range r.ends {
				f.end()
			}
		}
	}
}
