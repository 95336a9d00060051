package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// smallDisk returns a directory on a disk of its own with room for 8 MiB, which limits what can be written before the first refusal. It
// requires root.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("SKIPPED-NOT-ROOT %s: a small disk cannot be mounted here: %v", t.Name(), err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

const misconf = "MISCONF Errors writing to the AOF file: "

// On a full disk writes are refused in Redis's words and reads go on; when there is room again, writes go on. Nothing acknowledged is lost.
func TestASmallDiskThatIsFull(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			dir := smallDisk(t)
			ballast := filepath.Join(dir, "ballast")
			if err := os.WriteFile(ballast, make([]byte, 8<<20-324<<10), 0o600); err != nil {
				t.Fatal(err)
			}
			db := open(t, embedded.Options{Dir: filepath.Join(dir, "data"), Fsync: fsync})
			rdb, ctx := db.Client(), t.Context()
			var acknowledged []string
			var err error
			for i := 0; err == nil && i < 1000; i++ {
				key := fmt.Sprint("k", i)
				if err = rdb.Set(ctx, key, strings.Repeat("v", 8<<10), time.Hour).Err(); err == nil {
					acknowledged = append(acknowledged, key)
				}
			}
			if len(acknowledged) < 10 || len(acknowledged) > 900 {
				t.Fatalf("%d writes of 8 kB were taken, then: %v", len(acknowledged), err)
			}
			expect.Eventually(t, "writes are refused", func() bool {
				err := rdb.Incr(ctx, "n").Err()
				return err != nil && err.Error() == misconf+"No space left on device"
			})
			if err := rdb.Ping(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), misconf) {
				t.Errorf("PING: %v", err)
			}
			if v, err := rdb.Get(ctx, acknowledged[0]).Result(); len(v) != 8<<10 || err != nil {
				t.Errorf("a read: %d bytes, %v", len(v), err)
			}
			if info := rdb.Info(ctx, "persistence").Val(); !strings.Contains(info, "aof_last_write_status:err") {
				t.Errorf("INFO: %s", info)
			}

			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			expect.Eventually(t, "writes go on", func() bool { return rdb.Set(ctx, "after", "v", time.Hour).Err() == nil })
			if err := db.Close(ctx); err != nil {
				t.Fatal(err)
			}
			again := open(t, embedded.Options{Dir: filepath.Join(dir, "data")})
			if n := again.Client().Exists(ctx, append(acknowledged, "after")...).Val(); n != int64(len(acknowledged)+1) {
				t.Errorf("%d of %d keys", n, len(acknowledged)+1)
			}
			if again.Recovered.Cut != 0 {
				t.Errorf("%+v", again.Recovered)
			}
		})
	}
}

// A directory that cannot be written to is an error of Open that names it. One that becomes so later fails the compaction, which INFO
// reports, and writes go on in the open file.
func TestADirectoryThatCannotBeWritten(t *testing.T) {
	dir := smallDisk(t)
	db := open(t, embedded.Options{Dir: filepath.Join(dir, "data")})
	rdb, ctx := db.Client(), t.Context()
	rdb.Set(ctx, "k", "v", time.Hour)
	files := filepath.Join(dir, "data", "appendonlydir")
	if err := os.Rename(files, files+".away"); err != nil { // nobody can create a file there, not even root
		t.Fatal(err)
	}
	if err := rdb.BgRewriteAOF(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	expect.Eventually(t, "the compaction failed", func() bool {
		info := rdb.Info(ctx, "persistence").Val()
		return strings.Contains(info, "aof_last_bgrewrite_status:err") && strings.Contains(info, "aof_rewrite_in_progress:0")
	})
	if err := rdb.Set(ctx, "l", "v", time.Hour).Err(); err != nil {
		t.Errorf("a write: %v", err)
	}
	os.Rename(files+".away", files)
	if err := db.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"data", "other"} {
		at = filepath.Join(dir, at)
		if _, err := embedded.Open(embedded.Options{Dir: at}); err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "read-only file system") {
			t.Errorf("%s: %v", at, err)
		}
	}
	syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=8m")
	again := open(t, embedded.Options{Dir: filepath.Join(dir, "data")})
	if n := again.Client().Exists(ctx, "k", "l").Val(); n != 2 {
		t.Errorf("%d of 2 keys", n)
	}
}
