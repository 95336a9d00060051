package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// full is a file on a full device, as Linux offers it.
func full(t *testing.T) *os.File {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no /dev/full here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// When the disk is full, writes are refused in Redis's words and reads go on; replies waiting for "always" fail. When there is room again,
// writes go on, and nothing that was recorded is missing.
func TestDiskFull(t *testing.T) {
	for _, policy := range Policies {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				r := newRig(t, Options{Dir: dir, Fsync: policy}, start)
				r.play("SET", "before", "v")
				if err := r.j.Await(r.j.Position()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * rest)
				synctest.Wait()
				r.j.mu.Lock()
				disk := r.j.file
				r.j.file = full(t)
				r.j.mu.Unlock()

				r.play("SET", "between", "v")
				err := r.j.Await(r.j.Position())
				if (policy == "always") != errors.Is(err, syscall.ENOSPC) {
					t.Errorf("waited for: %v", err)
				}
				time.Sleep(2 * rest)
				synctest.Wait()
				const misconf = "-MISCONF Errors writing to the AOF file: No space left on device"
				for command, want := range map[string]string{
					"SET k v": misconf, "PING": misconf, "EXPIRE before 10": misconf, "EVAL return(redis.call('set','k','v')) 0": misconf + " script: ",
					"GET before": "$1\r\nv", "GET between": "$1\r\nv", "DBSIZE": ":2",
				} {
					if got := r.play(strings.Fields(command)...); !strings.HasPrefix(got, want) {
						t.Errorf("%s: %s", command, got)
					}
				}
				r.play("MULTI")
				if got := r.play("SET", "k", "v"); got != misconf {
					t.Errorf("queued: %s", got)
				}
				if got := r.play("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
					t.Errorf("EXEC: %s", got)
				}
				if !r.j.Safe(r.j.Position()) {
					t.Error("reads wait for a disk that is full")
				}

				r.j.mu.Lock()
				r.j.file.Close()
				r.j.file = disk
				r.j.mu.Unlock()
				time.Sleep(time.Second)
				synctest.Wait()
				if got := r.play("SET", "after", "v"); got != "+OK" {
					t.Errorf("with room again: %s", got)
				}
				if err := r.j.Await(r.j.Position()); err != nil {
					t.Error(err)
				}
				r.close()
				r = newRig(t, Options{Dir: dir}, start)
				if got := r.play("EXISTS", "before", "between", "after"); got != ":3" {
					t.Errorf("%s of 3 keys", got)
				}
				r.close()
			})
		})
	}
}

// After a failed sync the contents of the file are unknown: writes are refused until all data are in a new base.
func TestAFailedSyncIsMendedByANewBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, Options{Dir: dir, Fsync: "always"}, start)
		r.play("SET", "a", "1")
		synctest.Wait()
		r.j.mu.Lock()
		r.j.fail(syncError{syscall.EIO})
		r.j.mu.Unlock()
		if got := r.play("SET", "b", "1"); got != "-MISCONF Errors writing to the AOF file: Input/output error" {
			t.Errorf("after a failed sync: %s", got)
		}
		const attempts = 20
		for seq := range int64(attempts) { // no base can be written
			os.Mkdir(filepath.Join(dir, folder, asidePrefix+baseName(seq+2)), 0o755)
		}
		time.Sleep(attempts / 2 * retryEvery)
		for seq := range int64(attempts) {
			os.Remove(filepath.Join(dir, folder, asidePrefix+baseName(seq+2)))
		}
		if files, _ := filepath.Glob(filepath.Join(dir, folder, "*.incr.aof")); len(files) > 2 {
			t.Errorf("attempts that failed left %d files", len(files))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.play("SET", "c", "1"); got != "+OK" {
			t.Errorf("with a new base: %s", got)
		}
		if err := r.j.Await(r.j.Position()); err != nil {
			t.Error(err)
		}
		if r.j.files.base.seq != 2 {
			t.Errorf("the base is %v", r.j.files.base)
		}
		r.close()
		r = newRig(t, Options{Dir: dir}, start)
		if got := r.play("EXISTS", "a", "c"); got != ":2" {
			t.Errorf("%s of 2 keys", got)
		}
		r.close()
	})
}
