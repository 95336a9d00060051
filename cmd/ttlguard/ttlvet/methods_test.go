package ttlvet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// known are methods whose names begin like a command that can leave a key without a TTL, and which do not, as
// the rest of their name says; and those that take the TTL along with the key.
var known = strings.Fields(`
	LPushX RPushX ZAddXX ExpireXX ExpireGT ExpireTime PExpireTime
	BitFieldRO Sort SortInterfaces SortRO EvalRO EvalShaRO FCallRO FCallRo GeoRadius GeoRadiusByMember
	XGroupCreate XGroupCreateConsumer XGroupDelConsumer XGroupDestroy XGroupSetID
	Copy Rename RenameNX`)

// Every method of go-redis for a command that ttlguard judges is in the table, so that neither a new go-redis nor a new rule of ttlguard is
// forgotten here.
func TestEveryMethod(t *testing.T) {
	judged := effects(t)
	methods := reflect.TypeFor[redis.Cmdable]()
	found := map[string]bool{}
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		lower := strings.ToLower(name)
		if !slices.ContainsFunc(judged, func(command string) bool { return strings.HasPrefix(lower, command) }) {
			continue
		}
		found[name] = true
		if _, ok := commands[name]; !ok && !slices.Contains(known, name) {
			t.Errorf("%s is not in the table of methods", name)
		}
	}
	if len(found) < 80 {
		t.Errorf("only %d methods", len(found))
	}
}

// Every method of the table is one of go-redis, and its arguments are what the table says.
func TestTableIsTrue(t *testing.T) {
	methods := reflect.TypeFor[redis.Cmdable]()
	for name, c := range commands {
		m, ok := methods.MethodByName(name)
		if name == "Run" { // of redis.Script
			m, ok = reflect.TypeFor[*redis.Script]().MethodByName(name)
			m.Type = reflect.TypeOf((*redis.Script)(nil).Run)
		}
		if !ok {
			t.Errorf("go-redis has no %s", name)
			continue
		}
		in := func(i int) string { return m.Type.In(i).String() }
		switch key := in(c.key); {
		case c.does == scripted || c.many > 0:
			if !strings.HasPrefix(key, "[]") {
				t.Errorf("%s: the keys are %s", name, key)
			}
		case c.field != "":
			if f, ok := m.Type.In(c.key).Elem().FieldByName(c.field); !ok || f.Type.Kind() != reflect.String {
				t.Errorf("%s: %s has no field %s", name, key, c.field)
			}
		case key != "string":
			t.Errorf("%s: the key is %s", name, key)
		}
		if c.ttl > 0 && in(c.ttl) != "time.Duration" && !strings.HasSuffix(in(c.ttl), "Args") {
			t.Errorf("%s: the expiration is %s", name, in(c.ttl))
		}
	}
}

// effects are the commands that ttlguard judges and which can leave a key without a TTL, from its source.
func effects(t *testing.T) (all []string) {
	t.Helper()
	folder := "../../../ttlguard"
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || spec.Names[0].Name != "effects" {
				return true
			}
			lit, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, elt := range lit.Elts {
				pair := elt.(*ast.KeyValueExpr)
				name, _ := strconv.Unquote(pair.Key.(*ast.BasicLit).Value)
				if value, ok := pair.Value.(*ast.Ident); !ok || !slices.Contains([]string{"doubts", "doubtsAll", "removes"}, value.Name) {
					all = append(all, name)
				}
			}
			return false
		})
	}
	if len(all) < 50 {
		t.Fatalf("only %d commands found in %s", len(all), folder)
	}
	return all
}
