package replica

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// wire is a connection to a master.
type wire struct {
	net.Conn
	in      *bufio.Reader
	silence time.Duration
	broken  error // the error of the last read

	mu sync.Mutex // held to write
}

func newWire(nc net.Conn, silence time.Duration) *wire {
	w := &wire{Conn: nc, silence: silence}
	w.in = bufio.NewReaderSize(w, 64<<10)
	return w
}

// Read reads, but waits only for a limited time.
func (w *wire) Read(b []byte) (int, error) {
	w.SetReadDeadline(time.Now().Add(w.silence))
	n, err := w.Conn.Read(b)
	w.broken = err
	return n, err
}

// send writes b, usually a command.
func (w *wire) send(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.SetWriteDeadline(time.Now().Add(w.silence))
	_, err := w.Write(b)
	return err
}

func (w *wire) command(words ...string) error {
	var args [][]byte
	for _, word := range words {
		args = append(args, []byte(word))
	}
	return w.send(engine.AppendCommand(nil, args))
}

// line reads a line, without its end. Empty lines, which mean that the master is still busy, are skipped.
func (w *wire) line() (string, error) {
	for {
		line, err := w.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", fmt.Errorf("the master sent a line of more than %d bytes", len(line))
		}
		if err != nil {
			return "", err
		}
		if text := strings.TrimRight(string(line), "\r\n"); text != "" {
			return text, nil
		}
	}
}

// ask sends a command and returns the reply, which must be a single line.
func (w *wire) ask(words ...string) (string, error) {
	if err := w.command(words...); err != nil {
		return "", err
	}
	return w.line()
}

// once makes a link, keeps it until it breaks, and returns the reason.
func (l *Link) once(ctx context.Context, m *engine.Master) error {
	addr := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	var user, password, id string
	var port int
	var offset int64
	if err := l.with(m, func(_ int64, e *engine.Engine) {
		m.State = engine.LinkGreets
		user, password = e.Credentials()
		port, id, offset = e.Port(), m.ID, m.Offset
	}); err != nil {
		return err
	}
	dialing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nc, err := l.o.Dial(dialing, addr)
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	w := newWire(nc, l.o.Silence)
	reply, err := w.greet(user, password, port, id, offset)
	if err != nil {
		return err
	}
	words := strings.Fields(reply)
	switch {
	case words[0] == "+CONTINUE":
		err = l.with(m, func(int64, *engine.Engine) {
			if len(words) > 1 {
				m.ID = words[1]
			}
		})
		if err != nil {
			return err
		}
	case words[0] == "+FULLRESYNC" && len(words) == 3:
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return fmt.Errorf("the master answered PSYNC with %.100q", reply)
		}
		if err := l.takeAll(ctx, m, w, words[1], offset); err != nil {
			return err
		}
	case strings.HasPrefix(reply, "-NOMASTERLINK") || strings.HasPrefix(reply, "-LOADING") || strings.HasPrefix(reply, "-MASTERDOWN"):
		return fmt.Errorf("the master has no data yet: %s", reply[1:])
	default:
		return refused{fmt.Errorf("the master answered PSYNC with %.200q", reply)}
	}
	return l.obey(ctx, m, w)
}

// greet introduces the replica and says how far it has come; it returns the answer to PSYNC.
func (w *wire) greet(user, password string, port int, id string, offset int64) (reply string, err error) {
	reply, err = w.ask("PING")
	if err != nil {
		return "", lost(err)
	}
	if strings.HasPrefix(reply, "-") && !strings.HasPrefix(reply, "-NOAUTH") && !strings.HasPrefix(reply, "-NOPERM") {
		return "", refused{fmt.Errorf("the master answered PING with %.200q", reply)}
	}
	if strings.HasPrefix(reply, "-NOAUTH") && password == "" {
		return "", refused{errors.New("the master requires a password: set embedded.Master.Password, redis://:password@host:port, or CONFIG SET masterauth")}
	}
	steps := [][]string{}
	switch {
	case password != "" && user != "":
		steps = append(steps, []string{"AUTH", user, password})
	case password != "":
		steps = append(steps, []string{"AUTH", password})
	}
	steps = append(steps, []string{"REPLCONF", "listening-port", strconv.Itoa(port)}, []string{"REPLCONF", "capa", "eof", "capa", "psync2"})
	for _, step := range steps {
		reply, err := w.ask(step...)
		if err != nil {
			return "", lost(err)
		}
		if strings.HasPrefix(reply, "-") {
			return "", refused{fmt.Errorf("the master refused %s: %.200s", step[0], reply[1:])}
		}
	}
	if id == "" {
		reply, err = w.ask("PSYNC", "?", "-1")
	} else {
		reply, err = w.ask("PSYNC", id, strconv.FormatInt(offset+1, 10))
	}
	return reply, lost(err)
}

// lost explains an error of the connection.
func lost(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the master closed the connection")
	}
	return fmt.Errorf("the connection broke: %w", err)
}
