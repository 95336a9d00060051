package journal

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// Replace gives the journal other data: those of next, which the engine is about to adopt, as a replica does after a full synchronisation.
// It first writes them to new files, while commands continue. Then, between two commands, it calls adopt, which may still refuse; otherwise adopt
// calls commit and adopts the data. After a crash before commit the journal is as it was; after a later crash it has the new data.
func (j *Journal) Replace(next *engine.Engine, adopt func(now int64, e *engine.Engine, commit func() error) error) error {
	j.mu.Lock()
	for j.compact.running {
		j.changed.Wait()
	}
	if j.begin == nil || j.closed || j.compact.stop {
		j.mu.Unlock()
		return errStopped
	}
	j.compact = compaction{running: true}
	old, do, seq := j.files, j.begin, j.files.lastSeq()+1
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.compact.running = false
		j.changed.Broadcast()
	}()

	file, err := os.OpenFile(filepath.Join(j.dir, incrName(seq)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	size, err := j.writeBase(seq, func(f func(int64, *engine.Engine)) { f(j.clock(), next) }, 0, next.Snapshot())
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return err
	}
	kept := manifest{base: &part{baseName(seq), seq, baseFile}, incrs: []part{{incrName(seq), seq, incremental}}}
	do(func(now int64, e *engine.Engine) {
		if err = adopt(now, e, func() error { return j.name(kept) }); err == nil {
			j.goOnWith(file, kept, size)
		}
	})
	if err != nil {
		return errors.Join(err, file.Close()) // keep the files: a manifest that was not synced may name them, and tidy decides
	}
	for _, name := range old.names() {
		os.Remove(filepath.Join(j.dir, name))
	}
	return nil
}

// goOnWith records in file from now on. What was recorded before is no longer needed.
func (j *Journal) goOnWith(file *os.File, kept manifest, size int64) {
	j.stream.Reselect()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next != nil { // left by a failed compaction
		j.next.Close()
	}
	j.files, j.next, j.nextAt = kept, file, j.appended.Load()
	j.drop()
	j.base, j.since = size, 0
}
