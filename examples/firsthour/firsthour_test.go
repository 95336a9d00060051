// Package firsthour is what a newcomer does first, as a test: a module of one's own, the README's code pasted into it, a Redis.
package firsthour

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

const module = "github.com/mayflycache/mayfly"

// What the README's code takes for granted, and a look at what it left in Redis. What follows it is what this prints.
const before = `
type User struct{ Name string }

type database struct{}

func (database) QueryUser(_ context.Context, id int64) (User, error) {
	fmt.Println("the database is asked for", id)
	return User{"Ada"}, nil
}

func main() {
	ctx := context.Background()
	var db database
`

const after = `
	fmt.Println(u, err)
	u, err = cache.Get(ctx, 1001)
	left := rdb.PTTL(ctx, "user:1001").Val()
	fmt.Println(u, err, left > 50*time.Minute && left < 70*time.Minute)
}
`

const printed = `the database is asked for 1001
{Ada} <nil>
the database is asked for 1001
{Ada} <nil> true
`

func TestTheREADMEPasted(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	code := pasted(t, filepath.Join(root, "README.md"))
	dir := t.TempDir()
	run := func(t *testing.T, program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%.2000s", program, strings.Join(args, " "), err, complaints.String())
		}
		return string(out)
	}
	write := func(program string) {
		t.Helper()
		formatted, err := format.Source([]byte(program))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, program)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), formatted, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const address = `"localhost:6379"`
	if strings.Count(code, address) != 1 {
		t.Fatalf("the README's code names %s %d times, not once", address, strings.Count(code, address))
	}
	program := complete(t, root, before+code+after)
	write(program)
	run(t, "go", "mod", "init", "example.com/firsthour")
	run(t, "go", "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root)
	run(t, "go", "get", ".")
	run(t, "go", "vet", ".")

	try := func(t *testing.T, addr string) {
		t.Helper()
		write(strings.Replace(program, address, fmt.Sprintf("%q", addr), 1))
		if got := run(t, "go", "run", "."); got != printed {
			t.Errorf("it prints\n%.1000s\nwant\n%s", got, printed)
		}
	}
	t.Run("redistest", func(t *testing.T) { try(t, redistest.Start(t).Addr()) })
	t.Run("redis 8", func(t *testing.T) { try(t, realredis.Start(t, realredis.Options{}).Addr()) })
}

// pasted returns the first Go code of a page.
func pasted(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```go\n")
	code, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s has no Go code", page)
	}
	return code
}

// complete makes a program of declarations by adding the imports that they use: packages of this module, and the few others that
// every reader knows.
func complete(t *testing.T, root, declarations string) string {
	t.Helper()
	known := map[string]string{"mayfly": module, "redis": "github.com/redis/go-redis/v9",
		"context": "context", "errors": "errors", "fmt": "fmt", "time": "time", "log": "log", "slog": "log/slog", "http": "net/http"}
	f, err := parser.ParseFile(token.NewFileSet(), "main.go", "package main\n"+declarations, 0)
	if err != nil {
		t.Fatalf("the README's code: %v", err)
	}
	used := map[string]bool{}
	for _, name := range f.Unresolved {
		used[name.Name] = true
	}
	imports := ""
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && used[x.Name] {
			used[x.Name] = false
			path := known[x.Name]
			if _, err := os.Stat(filepath.Join(root, x.Name)); path == "" && err == nil {
				path = module + "/" + x.Name
			}
			if path == "" {
				t.Fatalf("the README's code uses %s.%s: what is it?", x.Name, s.Sel.Name)
			}
			imports += fmt.Sprintf("\t%q\n", path)
		}
		return true
	})
	return "package main\n\nimport (\n" + imports + ")\n" + declarations
}
