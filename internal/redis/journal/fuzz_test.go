package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

func FuzzManifest(f *testing.F) {
	f.Add("file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i startoffset 7\n")
	f.Add("file \"a b\" seq 2 type h\n#\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseManifest([]byte(text))
		if err != nil || m.base == nil && len(m.incrs) == 0 || strings.ContainsAny(strings.Join(m.names(), ""), " \"'\n\r#") {
			return
		}
		again, err := parseManifest([]byte(m.String()))
		if err != nil || again.String() != m.String() {
			t.Errorf("%q became %q, %v", text, m.String(), err)
		}
	})
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n"))
	f.Add([]byte("#TS:1\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*1\r\n"))
	dir := f.TempDir()
	os.MkdirAll(filepath.Join(dir, folder), 0o755)
	files := manifest{incrs: []part{{incrName(1), 1, incremental}}}
	if err := (&Journal{dir: filepath.Join(dir, folder)}).name(files); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		os.WriteFile(filepath.Join(dir, folder, incrName(1)), log, 0o644)
		for range 2 { // a file that was cut once is whole
			j := &Journal{dir: filepath.Join(dir, folder), clock: func() int64 { return start }}
			report, err := j.open(Options{Dir: dir}, engine.New(engine.Options{Seed: 1}))
			if err != nil {
				return
			}
			j.file.Close()
			log = log[:len(log)-int(report.Cut)]
			if left, _ := os.Stat(filepath.Join(dir, folder, incrName(1))); left.Size() != int64(len(log)) {
				t.Fatalf("%d bytes are left, and %d were to be", left.Size(), len(log))
			}
		}
	})
}
