package script

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// The compiler of this machine looks for a constant among all that its function has, and for a name among all locals in sight, one by one;
// and it has no interrupt. So what it will look at is counted before, and a script for which that is too much is refused: it would keep every
// client waiting for more than the tenth of a second or so that this takes. Redis's own limit is 262,143 constants in a function.
const maxLooks = 20_000_000 // some 6,300 different constants in a function

// foldable is how many operators of arithmetic may follow each other: the compiler tries at each of them whether all below are constants.
const foldable = 50

// refused is what fence panics with where the language of Redis has no such thing, or this compiler no room.
type refused struct {
	line int
	why  string
}

func (e refused) Error() string { return fmt.Sprintf("%s:%d: %s", chunkName, max(e.line, 1), e.why) }

// names counts what the compiler will look at.
type names struct {
	constants map[string]int // of the function, by their places
	locals    int            // in sight, those of the functions around among them
	looks     int
}

// look counts n looks.
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

// ident counts a name, which is a constant unless it is a local's.
func (f *names) ident(at ast.PositionHolder, name string) {
	f.look(at, f.locals)
	f.constant(at, "s"+name)
}

// scope notes the locals in sight, and returns what ends those that come after.
func (f *names) scope() (end func()) {
	before := f.locals
	return func() { f.locals = before }
}

// function begins a function within another, and returns what ends it.
func (f *names) function(e *ast.FunctionExpr) (end func()) {
	around, locals := f.constants, f.locals
	f.constants = nil
	f.locals += len(e.ParList.Names) + 1
	return func() { f.constants, f.locals = around, locals }
}

// unfolded is e where the compiler does not look for constants.
func unfolded(e *ast.ArithmeticOpExpr) ast.Expr {
	yes, both := &ast.TrueExpr{}, &ast.LogicalOpExpr{Operator: "and", Rhs: e}
	place(e, yes)
	place(e, both)
	both.Lhs = yes
	return both
}
