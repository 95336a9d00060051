package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Log returns the commands that clients sent and the server began to run, oldest first, each as a line. Words are shown as they were sent,
// quoted as in Go if they are empty or contain anything but printable ASCII without spaces and quotes. Words longer than a kilobyte are cut.
// The commands by which every client introduces itself are left out: HELLO, AUTH, CLIENT SETINFO, SETNAME and MAINT_NOTIFICATIONS. Of a long
// log, at least the latest half megabyte is kept.
//
//	set user:7 "Ada Lovelace" ex 60
func (s *Server) Log() []string { return s.log.lines() }

// ClearLog empties the log.
func (s *Server) ClearLog() { s.log.clear() }

const (
	logPage = 512 << 10 // bytes
	logWord = 1 << 10   // bytes kept of a word
)

// commandLog keeps lines of text, at most the latest two pages.
type commandLog struct {
	mu        sync.Mutex
	old, page []byte
}

func (l *commandLog) add(_ int64, args [][]byte) {
	if greets(args) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.page) > logPage {
		l.old, l.page = l.page, l.old[:0]
	}
	for i, a := range args {
		if i > 0 {
			l.page = append(l.page, ' ')
		}
		l.page = appendWord(l.page, a)
	}
	l.page = append(l.page, '\n')
}

func (l *commandLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSuffix(string(l.old)+string(l.page), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (l *commandLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.old, l.page = nil, nil
}

// greets reports whether a command is one by which clients introduce themselves.
func greets(args [][]byte) bool {
	is := func(i int, word string) bool { return i < len(args) && strings.EqualFold(string(args[i]), word) }
	return is(0, "hello") || is(0, "auth") || is(0, "client") && (is(1, "setinfo") || is(1, "setname") || is(1, "maint_notifications"))
}

func appendWord(dst, word []byte) []byte {
	whole := len(word)
	word = word[:min(whole, logWord)]
	if whole == 0 || slices.ContainsFunc(word, func(b byte) bool { return b <= ' ' || b >= 0x7f || b == '"' || b == '\\' }) {
		dst = strconv.AppendQuote(dst, string(word))
	} else {
		dst = append(dst, word...)
	}
	if whole > len(word) {
		dst = fmt.Appendf(dst, "...(%d bytes)", whole)
	}
	return dst
}
