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

// link is the connection of one client, and the one to the server that was made for it. The second ends when the client is gone and
// all that it sent has been delivered and answered.
type link struct {
	p      *Proxy
	number int
	client net.Conn
	server net.Conn

	mu     sync.Mutex // guards the rest, and writing to both ends
	out    []*request // that the client sent and the server did not get, in their order: the first is held
	asked  []*request // that the server has got and did not answer
	back   []*request // whose replies the client did not get: the first is held
	gone   bool       // the client
	dead   bool       // the server
	silent bool       // the client gets nothing more
	opaque bool       // it has subscribed: what comes is no reply to what was asked

	transaction [][]string // the commands since MULTI, MULTI included; nil outside. Of requests alone
}

// request is one command, and later its reply; or a push, which nobody asked for.
type request struct {
	bytes []byte
	fault *Fault   // nil as a rule
	ends  []*Fault // that are done when this one is answered
}

// requests reads what the client sends, until it is gone.
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

// fault returns what is to be done to a command. Those of a transaction pass, and what is about them is done to its EXEC.
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

// advance passes on what is not held any more, in both directions.
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
		l.server.Write(send) // an error shows where replies are read
	}
	l.answerLocked()
	l.settleLocked()
}

// settleLocked ends a link for which there is nothing left to do.
func (l *link) settleLocked() {
	if l.dead {
		endAll(l.out, l.asked, l.back)
		l.out, l.asked, l.back = nil, nil, nil
	}
	if l.gone && (l.opaque || len(l.out) == 0 && len(l.asked) == 0) {
		l.server.Close()
	}
}

// replies reads what the server answers, until it is gone.
func (l *link) replies() {
	var raw bytes.Buffer // that was read, from the beginning of the next reply on
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

// answerLocked gives the client the replies that are not held.
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
			l.client.Write(r.bytes) // an error means that it has left
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

// endAll ends the faults of requests that nothing more becomes of.
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
