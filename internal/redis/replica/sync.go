package replica

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// takeAll reads all data of the master, and has the engine adopt them instead of its own. Nothing in the engine changes until they are
// complete.
func (l *Link) takeAll(ctx context.Context, m *engine.Master, w *wire, id string, offset int64) error {
	var next *engine.Engine
	var clock int64
	if err := l.with(m, func(now int64, e *engine.Engine) {
		m.State = engine.LinkSyncs
		next, clock = e.Sibling(), now
	}); err != nil {
		return err
	}
	defer w.reassure(ctx)()
	head, err := w.line()
	if err != nil {
		return lost(err)
	}
	if strings.HasPrefix(head, "-") {
		return fmt.Errorf("the master gave up the snapshot: %s", head[1:])
	}
	db, err := w.load(next, clock, head)
	if err != nil {
		return err
	}
	exchange := func(now int64, e *engine.Engine) {
		e.Adopt(now, next)
		m.ID, m.Offset, m.DB, m.Heard = id, offset, db, now/1000
	}
	if l.o.Journal == nil {
		return l.with(m, exchange)
	}
	err = l.o.Journal.Replace(next, func(now int64, e *engine.Engine, commit func() error) error {
		if e.Master() != m {
			return errGone
		}
		err := commit()
		if err == nil {
			exchange(now, e)
		}
		return err
	})
	if err != nil && !errors.Is(err, errGone) {
		err = refused{fmt.Errorf("the master's data cannot be written to the journal: %w", err)}
	}
	return err
}

// load reads the file announced by head into next, whether its length is given or its end is marked, and returns the database selected at the
// start of the stream behind it.
func (w *wire) load(next *engine.Engine, clock int64, head string) (db int, err error) {
	mark, marked := strings.CutPrefix(head, "$EOF:")
	length := int64(-1)
	switch {
	case marked && len(mark) == 40:
	case !marked && strings.HasPrefix(head, "$"):
		if length, err = strconv.ParseInt(head[1:], 10, 64); err == nil && length >= 0 {
			break
		}
		fallthrough
	default:
		return 0, fmt.Errorf("the master sent %.100q instead of a snapshot", head)
	}
	var src io.Reader = w.in
	if !marked {
		src = io.LimitReader(w.in, length)
	}
	file := rdb.NewFile(src)
	if _, err := next.Load(clock, file, true); err != nil {
		if w.broken != nil || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, lost(err)
		}
		return 0, refused{fmt.Errorf("the master's snapshot cannot be read, at byte %d: %w", file.Offset(), err)}
	}
	if rest := file.Rest(); marked {
		w.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(rest)), w.in), 64<<10)
		end := make([]byte, len(mark))
		if _, err := io.ReadFull(w.in, end); err != nil {
			return 0, lost(err)
		} else if string(end) != mark {
			return 0, fmt.Errorf("the master's snapshot is followed by %q instead of its end mark", end)
		}
	} else if file.Offset() != length {
		return 0, fmt.Errorf("the master's snapshot has %d bytes, but %d were announced", file.Offset(), length)
	}
	if text, ok := file.Aux["repl-stream-db"]; ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < engine.Databases {
			db = n
		}
	}
	return db, nil
}

// reassure sends the master an empty line every second, as Redis does, to say that its data are still being read. Calling stop ends that.
func (w *wire) reassure(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				w.send([]byte("\n"))
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
