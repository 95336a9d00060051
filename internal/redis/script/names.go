package script

import (
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// This machine's compiler searches linearly: for a constant among all constants of its function, and for a name among all locals in scope;
// and it cannot be interrupted. So its steps are counted beforehand, and a script that needs too many is refused: it would keep every client
// waiting for more than about a tenth of a second. Redis's own limit is 262,143 constants in a function.
const maxLooks = 20_000_000 // about 6,300 different constants in a function

// foldable is how many arithmetic operators may follow each other: at each one the compiler checks whether all operands below are constants.
const foldable = 50

// refused is the panic of fence for code that Redis's Lua does not accept, or that this compiler has no room for.
type refused struct {
	line int
	why  string
}

func (e refused) Error() string { return fmt.Sprintf("%s:%d: %s", chunkName, max(e.line, 1), e.why) }

// names counts the steps of the compiler's searches.
type names struct {
	constants map[string]int // of the function, with their positions
	locals    []string       // those in scope, including those of the enclosing functions
	own       int            // where those of the innermost function begin
	looks     int
}

// look counts n steps.
func (f *names) look(at ast.PositionHolder, n int) {
	if f.looks += n; f.looks > maxLooks {
		panic(refused{at.Line(), "constant table overflow"})
	}
}

// constant counts a constant of the function; its text begins with its type.
func (f *names) constant(at ast.PositionHolder, text string) {
	place, ok := f.constants[text]
	if !ok {
		if f.constants == nil {
			f.constants = make(map[string]int)
		}
		place = len(f.constants) + 1
		f.constants[text] = place
	}
	f.look(at, place)
}

// ident counts a name, as if it were both a local and a constant.
func (f *names) ident(at ast.PositionHolder, name string) {
	f.look(at, len(f.locals))
	f.constant(at, "s"+name)
}

// local declares locals. Those that the compiler adds have no name.
func (f *names) local(names ...string) { f.locals = append(f.locals, names...) }

// isLocal reports whether e is the name of a local of the innermost function.
func (f *names) isLocal(e ast.Expr) bool {
	i, ok := e.(*ast.IdentExpr)
	return ok && slices.Contains(f.locals[f.own:], i.Value)
}

// scope begins a scope, and returns a function that ends it with its locals.
func (f *names) scope() (end func()) {
	before := len(f.locals)
	return func() { f.locals = f.locals[:before] }
}

// function begins a nested function, and returns a function that ends it.
func (f *names) function(e *ast.FunctionExpr, method bool) (end func()) {
	around, locals, own := f.constants, f.locals, f.own
	f.constants, f.own = nil, len(f.locals)
	if method {
		f.local("self")
	}
	f.local(e.ParList.Names...)
	if e.ParList.HasVargs {
		f.local("arg")
	}
	return func() { f.constants, f.locals, f.own = around, locals, own }
}

// unfolded hides e from the compiler's search for constants.
func unfolded(e *ast.ArithmeticOpExpr) ast.Expr {
	yes, both := &ast.TrueExpr{}, &ast.LogicalOpExpr{Operator: "and", Rhs: e}
	place(e, yes)
	place(e, both)
	both.Lhs = yes
	return both
}
