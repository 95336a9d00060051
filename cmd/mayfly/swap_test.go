package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func TestRewriteChangesTheImportAlone(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"package p\n\nimport \"github.com/alicebob/miniredis/v2\"\n", "package p\n\nimport miniredis \"github.com/mayflycache/mayfly/redistest\"\n"},
		{"package p\nimport (\n\t\"fmt\"\n\tmr `github.com/alicebob/miniredis/v2` // why\n)\nvar x  =  1", "package p\nimport (\n\t\"fmt\"\n\tmr \"github.com/mayflycache/mayfly/redistest\" // why\n)\nvar x  =  1"},
		{"package p\nimport _ \"github.com/alicebob/miniredis\"\n", "package p\nimport _ \"github.com/mayflycache/mayfly/redistest\"\n"},
		{"package p\nimport \"github.com/alicebob/miniredis/v2/server\"\n", ""},
		{"package p\n// import \"github.com/alicebob/miniredis/v2\"\n", ""},
		{"no Go", ""},
	} {
		after, n := rewrite([]byte(c.before))
		want, wantN := c.after, 1
		if want == "" {
			want, wantN = c.before, 0
		}
		if string(after) != want || n != wantN {
			t.Errorf("%q: %d changes, %q", c.before, n, after)
		}
	}
}

// A module with a user of miniredis, one that is not, and what is not looked at.
var module = map[string]string{
	"go.mod":           "module example.test/m\n\ngo 1.26\n",
	"a/a_test.go":      "package a\n\nimport \"github.com/alicebob/miniredis/v2\"\n",
	"b/b.go":           "package b\n",
	"inner/go.mod":     "module example.test/inner\n",
	"inner/c_test.go":  "package c\n\nimport \"github.com/alicebob/miniredis/v2\"\n",
	"vendor/x/x.go":    "package x\n\nimport \"github.com/alicebob/miniredis/v2\"\n",
	".git/config":      "",
	"a/testdata/t.txt": "data",
}

func inModule(t *testing.T) (root string) {
	root = t.TempDir()
	for name, text := range module {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	return root
}

// fakeGo answers the go command: the tests' results as given, first before and then after.
func fakeGo(t *testing.T, root string, results ...string) (func(ctx context.Context, dir string, args ...string) ([]byte, error), *[]string) {
	var asked []string
	return func(_ context.Context, dir string, args ...string) ([]byte, error) {
		asked = append(asked, strings.Join(args, " "))
		switch args[0] {
		case "env":
			return []byte(filepath.Join(root, "go.mod") + "\n"), nil
		case "list":
			real, err := filepath.EvalSymlinks(dir)
			return []byte("m/a " + filepath.Join(real, "a") + "\nm/b " + filepath.Join(real, "b") + "\n"), err
		case "mod":
			if args[len(args)-1] == "-json" {
				return exec.Command("go", "mod", "edit", "-json", filepath.Join(dir, "go.mod")).Output()
			}
		case "test":
			if args[len(args)-1] != "./a" {
				t.Errorf("go %q", args)
			}
			out := results[0]
			results = results[1:]
			return []byte(out), errors.New("exit status 1")
		}
		return nil, nil
	}, &asked
}

const (
	before = `{"Action":"pass","Package":"m/a","Test":"TestTTL"}
{"Action":"pass","Package":"m/a","Test":"TestSame"}
{"Action":"fail","Package":"m/a","Test":"TestBroken"}
{"Action":"pass","Package":"m/a","Test":"TestMany/one"}
{"Action":"pass","Package":"m/a","Test":"TestMany"}
{"Action":"pass","Package":"m/a"}
`
	after = `{"Action":"output","Package":"m/a","Test":"TestTTL","Output":"    a_test.go:7: TTL is 9.999s, want 10s\n"}
{"Action":"fail","Package":"m/a","Test":"TestTTL"}
{"Action":"pass","Package":"m/a","Test":"TestSame"}
{"Action":"fail","Package":"m/a","Test":"TestBroken"}
{"Action":"output","Package":"m/a","Test":"TestMany/one","Output":"    a_test.go:9: something nobody foresaw\n"}
{"Action":"fail","Package":"m/a","Test":"TestMany/one"}
{"Action":"fail","Package":"m/a","Test":"TestMany"}
{"Action":"fail","Package":"m/a"}
`
)

func TestSwapTellsWhatDiffers(t *testing.T) {
	root := inModule(t)
	var out bytes.Buffer
	s := &swapping{pattern: "./...", version: "v1.2.3", timeout: "1m", out: &out}
	var asked *[]string
	s.goTool, asked = fakeGo(t, root, before, after)
	different, err := s.try(t.Context(), root)
	if err != nil || different != 3 {
		t.Errorf("%d differ, %v", different, err)
	}
	for _, want := range []string{"1 packages import miniredis", "4 tests passed before, 1 of these after; 1 failed before and after", "TestTTL in m/a", "TTL is 9.999s, want 10s", "why: time flows", "TestMany in m/a", "something nobody foresaw", "why: not known"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "TestMany/one in") {
		t.Errorf("a test is reported twice:\n%s", &out)
	}
	if all := strings.Join(*asked, "\n"); !strings.Contains(all, "get github.com/mayflycache/mayfly@v1.2.3") || !strings.Contains(all, "mod tidy") {
		t.Errorf("asked go for\n%s", all)
	}
	for name, text := range module { // nothing was changed
		if got, err := os.ReadFile(filepath.Join(root, name)); string(got) != text || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if err := s.change(t.Context(), root); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{"a/a_test.go": true, "b/b.go": false, "inner/c_test.go": false, "vendor/x/x.go": false} {
		if got, _ := os.ReadFile(filepath.Join(root, name)); strings.Contains(string(got), doublePackage) != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// A module of a monorepo has its neighbours' directories in its go.mod, which are not beside the copy; and what it says of mayfly holds.
func TestSwapInAMonorepo(t *testing.T) {
	for what, c := range map[string]struct{ version, mod, want, not string }{
		"neighbours": {"", "replace (\n\texample.test/lib => ../lib\n\texample.test/old v1.0.0 => ./old\n\texample.test/fork => example.test/other v1.0.0\n)\n",
			"mod edit -replace=example.test/lib=BESIDE/lib -replace=example.test/old@v1.0.0=ROOT/old\n", "example.test/other"},
		"mayfly is required":          {"", "require github.com/mayflycache/mayfly v0.3.0\n", "mod tidy -e", "get github.com"},
		"mayfly is replaced":          {"", "replace github.com/mayflycache/mayfly => ../mayfly\n", "mod edit -replace=github.com/mayflycache/mayfly=BESIDE/mayfly\n", "get github.com"},
		"mayfly is unknown":           {"", "", "get github.com/mayflycache/mayfly@" + ownVersion(), "-replace"},
		"another version is asked of": {"v9.9.9", "require github.com/mayflycache/mayfly v0.3.0\n", "get github.com/mayflycache/mayfly@v9.9.9", "-replace"},
	} {
		t.Run(what, func(t *testing.T) {
			root := inModule(t)
			if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte(module["go.mod"]+c.mod), 0o644); err != nil {
				t.Fatal(err)
			}
			s := &swapping{pattern: "./...", version: c.version, timeout: "1m", out: io.Discard}
			var asked *[]string
			s.goTool, asked = fakeGo(t, root, before, before)
			if _, err := s.try(t.Context(), root); err != nil {
				t.Fatal(err)
			}
			paths := strings.NewReplacer("ROOT", root, "BESIDE", filepath.Dir(root))
			if all := strings.Join(*asked, "\n"); !strings.Contains(all, paths.Replace(c.want)) || strings.Contains(all, c.not) {
				t.Errorf("asked go for\n%s\nwant %s", all, paths.Replace(c.want))
			}
		})
	}
}

// Tests that need miniredis itself keep it, even if the module is changed.
func TestSwapLeavesWhatItSays(t *testing.T) {
	root := inModule(t)
	var out bytes.Buffer
	s := &swapping{pattern: "./...", version: "v1.2.3", timeout: "1m", out: &out}
	s.goTool, _ = fakeGo(t, root, `{"Action":"pass","Package":"m/a","Test":"TestStream"}
`, `{"Action":"output","Package":"m/a","Test":"TestStream","Output":"ERR unknown command 'xadd'\n"}
{"Action":"fail","Package":"m/a","Test":"TestStream"}
`)
	if different, err := s.try(t.Context(), root); different != 1 || err != nil {
		t.Fatalf("%d differ, %v: %s", different, err, &out)
	}
	if err := s.change(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(root, "a/a_test.go")); string(got) != module["a/a_test.go"] || err != nil {
		t.Errorf("it is %q, %v", got, err)
	}
	if !strings.Contains(out.String(), "and 0 files: ") || !strings.Contains(out.String(), "left on miniredis: ./a") {
		t.Errorf("it says\n%s", &out)
	}
}

// A test that ends its package with a panic hides the others: they run once more without it.
func TestSwapGoesOnAfterAPanic(t *testing.T) {
	root := inModule(t)
	var out bytes.Buffer
	s := &swapping{pattern: "./...", version: "v1.2.3", timeout: "1m", out: &out}
	var asked *[]string
	s.goTool, asked = fakeGo(t, root, before,
		`{"Action":"output","Package":"m/a","Test":"TestSame","Output":"panic: geo is not there\n"}
{"Action":"fail","Package":"m/a","Test":"TestSame"}
{"Action":"fail","Package":"m/a"}
`,
		`{"Action":"pass","Package":"m/a","Test":"TestTTL"}
{"Action":"pass","Package":"m/a","Test":"TestMany/called-otherwise"}
{"Action":"pass","Package":"m/a","Test":"TestMany"}
{"Action":"fail","Package":"m/a","Test":"TestBroken"}
`)
	different, err := s.try(t.Context(), root)
	if err != nil || different != 1 || !strings.Contains(out.String(), "4 tests passed before, 3 of these after") {
		t.Errorf("%d differ, %v:\n%s", different, err, &out)
	}
	if all := strings.Join(*asked, "\n"); !strings.Contains(all, "-skip=^(TestSame)$") {
		t.Errorf("asked go for\n%s", all)
	}
}

// A package that does not compile is reported once for each test, with the compiler's words.
func TestSwapExplains(t *testing.T) {
	for said, row := range map[string]string{
		`a_test.go:9: srv.Server undefined (type *redistest.Server has no field or method Server)`:            "miniredis's own server",
		`srv.NewSubscriber undefined (type *redistest.Server has no field or method NewSubscriber)`:           "subscribe with a client",
		`ERR unknown command 'XADD', with args beginning with: 's'`:                                           "`Stream`, `XAdd`, geo and functions",
		`not enough arguments in call to srv.Dial`:                                                            "has a dialer's signature",
		`go: module requires go >= 1.26 (running go 1.24)`:                                                    "What the swap raises",
		`cannot use rdb (variable of type *redis.Client) as Cmdable value`:                                    "What the swap raises",
		"expected: 10s\nactual  : 9.999s":                                                                     "Time flows",
		`expected "ERR invalid TTL", got "ERR invalid expire time in 'set' command"`:                          "Replies are Redis's",
		`Error: Received unexpected error: WRONGTYPE Operation against a key holding the wrong kind of value`: "Replies are Redis's",
		`ERR unknown command 'LATENCY', with args beginning with: 'LATEST'`:                                   "answered `ERR unknown command`",
		`m.CoolThing undefined (type *redistest.Server has no field or method CoolThing)`:                     "From miniredis, in five minutes",
	} {
		if got, ok := explain(said); !ok || got.row != row {
			t.Errorf("%s:\n got %q\nwant %q", said, got.row, row)
		}
	}
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reasons {
		if !strings.Contains(string(page), r.row) {
			t.Errorf("docs/testing.md has no %q", r.row)
		}
	}
}

func TestSwapWhereThereIsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"swap":                            "want one argument",
		"swap --with x --version y ./...": "cannot be combined",
		"swap --nosuch ./...":             "nosuch",
	} {
		var complaints bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), io.Discard, &complaints); code != 2 || !strings.Contains(complaints.String(), want) {
			t.Errorf("%s: exit %d, %s", args, code, &complaints)
		}
	}
	var complaints bytes.Buffer
	if code := run(t.Context(), []string{"swap", "./..."}, io.Discard, &complaints); code != 1 || !strings.Contains(complaints.String(), "there is no go.mod here") {
		t.Errorf("exit %d, %s", code, &complaints)
	}
}

// The whole way, with the go command: a module whose one test passes on both, and another that needs a TTL to stand still.
func TestSwapForReal(t *testing.T) {
	if !effort.Long() {
		t.Skip("builds a module twice: MAYFLY_LONG=1")
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/alicebob/miniredis/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test/m\n\ngo 1.26\n\nrequire github.com/alicebob/miniredis/v2 " + string(version),
		"go.sum": string(sums),
		"m_test.go": `package m

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func TestSame(t *testing.T) {
	srv := miniredis.RunT(t)
	srv.Set("k", "v")
	srv.SetTTL("k", time.Second)
	if srv.FastForward(time.Second); srv.Exists("k") {
		t.Error("alive")
	}
}

func TestTTLStands(t *testing.T) {
	srv := miniredis.RunT(t)
	srv.Set("k", "v")
	srv.SetTTL("k", 10*time.Second)
	time.Sleep(5 * time.Millisecond)
	if ttl := srv.TTL("k"); ttl != 10*time.Second {
		t.Errorf("TTL is %v", ttl)
	}
}
`} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	if out, err := exec.Command("go", "mod", "tidy").CombinedOutput(); err != nil {
		t.Skipf("the module cache does not have what is needed: %s", out)
	}
	var out, complaints bytes.Buffer
	code := run(t.Context(), []string{"swap", "--write", "--with", repository, "./..."}, &out, &complaints)
	for _, want := range []string{"2 tests passed before, 1 of these after", "TestTTLStands in example.test/m", "why: time flows", "changed 1 files"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	if code != 1 || !strings.Contains(complaints.String(), "1 tests passed before and do not after") {
		t.Errorf("exit %d: %s", code, &complaints)
	}
}
