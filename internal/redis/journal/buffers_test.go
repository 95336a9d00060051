package journal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// What is recorded while the writer writes, also after something so large that its memory is not kept, is written as it was: no memory is used for
// two things at a time.
func TestWhatIsBeingWrittenIsNotOverwritten(t *testing.T) {
	r := newRig(t, Options{Dir: t.TempDir(), Fsync: "no", MinCompact: -1}, start)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.play("SET", "a", "1")
	r.written()
	r.j.mu.Lock()
	file := r.j.file
	r.j.file = in // which takes no more than 64 KiB that nobody reads
	r.j.mu.Unlock()
	set := func(letter string, size int) (unit string) {
		value := strings.Repeat(letter, size)
		r.play("SET", letter, value)
		return fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\n%s\r\n$%d\r\n%s\r\n", letter, size, value)
	}
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
			t.Fatalf("what was written differs from what was recorded (%v)", err)
		}
	}
	for _, large := range []int{400 << 10, 5 << 20} {
		for _, sizes := range [][2]int{{400 << 10, 400 << 10}, {400 << 10, 400 << 10}, {large, 150 << 10}, {200 << 10, 150 << 10}, {200 << 10, 150 << 10}} {
			was := set("a", sizes[0])
			read(was[:100]) // the rest is being written
			next := set("b", sizes[1])
			read(was[100:] + next)
		}
	}
	r.j.mu.Lock()
	r.j.file = file
	r.j.mu.Unlock()
	in.Close()
	out.Close()
	r.close()
}
