package journal

import (
	"bytes"
	"fmt"
	"os"
)

// Before each write the writer notes in the lock file what it is about to write, and where. A process that is killed leaves the note. What is then
// unreadable between the two positions is what it had not written yet, whatever it looks like: a client's value may look like whole commands.
// The note is not synced. If it is older than the file, after a crash of the machine or after another program has written, it explains nothing.

// intent is a write to a file that may not have come to its end.
type intent struct {
	file     string
	from, to int64
}

// note replaces the note. An error is ignored: without a note the end of a file is judged by what it looks like.
func (i intent) note(lock *os.File) {
	lock.WriteAt(fmt.Appendf(nil, "%s %d %d\n", i.file, i.from, i.to), 0)
}

// noted returns the last note; zero if there is none.
func noted(lock *os.File) (i intent) {
	b := make([]byte, 200)
	n, _ := lock.ReadAt(b, 0)
	line, _, whole := bytes.Cut(b[:n], []byte("\n"))
	if _, err := fmt.Sscanf(string(line), "%s %d %d", &i.file, &i.from, &i.to); err != nil || !whole {
		return intent{}
	}
	return i
}

// explains reports whether a file of this size, unreadable from at on, is one that this write had not completed.
func (i intent) explains(file string, size, at int64) bool {
	return file == i.file && i.from <= at && size < i.to
}
