package script

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// This machine's compiler searches linearly: for a constant among all constants of its function, and for a name among all locals in scope;
// and it cannot be interrupted. So its steps are counted beforehand, and a script that needs too many is refused: it would keep every client
// waiting for more than about a tenth of a second. Redis's own limit is 262,143 constants in a function.
const maxLooks = 20_000_000 // about 6,300 different constants in a function

// foldable is how many arithmetic operators may follow each other: at each one the compiler checks whether all operands below are constants.
const foldable = 50

// refused is the panic of fence for what Redis's Lua does not have, or this compiler has no room for.
type refused struct {
	line int
	why  string
}

func (e refused) Error() string { return fmt.Sprintf("%s:%d: %s", chunkName, max(e.line, 1), e.why) }

// names counts the steps of the compiler's searches.
type names struct {
	constants map[string]int // of the function, with their positions
	locals    int            // locals in scope, including those of the enclosing functions
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
	f.look(at, f.locals)
	f.constant(at, "s"+name)
}

// scope begins a scope, and returns a function that ends it with its locals.
func (f *names) scope() (end func()) {
	before := f.locals
	return func() { f.locals = before }
}

// function begins a nested function, and returns a function that ends it.
func (f *names) function(e *ast.FunctionExpr) (end func()) {
	around, locals := f.constants, f.locals
	f.constants = nil
	f.locals += len(e.ParList.Names) + 1
	return func() { f.constants, f.locals = around, locals }
}

// unfolded hides e from the compiler's search for constants.
func unfolded(e *ast.ArithmeticOpExpr) ast.Expr {
	yes, both := &ast.TrueExpr{}, &ast.LogicalOpExpr{Operator: "and", Rhs: e}
	place(e, yes)
	place(e, both)
	both.Lhs = yes
	return both
}
