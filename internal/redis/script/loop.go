package script

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// loop is the state of a loop while its body is fenced.
type loop struct {
	around            *loop
	breaks, functions bool // the body contains one
}

// body fences the body of a loop. A break leaves all blocks up to the loop, but this compiler forgets that their locals end there too. So a function
// made in such a block would keep using a register that soon belongs to another local. The compiler does not forget the locals of the loop
// itself if a function uses one of them before the break. So such a loop gets a local, and a function that is never made.
func (f *fencer) body(at ast.PositionHolder, stmts []ast.Stmt) []ast.Stmt {
	l := &loop{around: f.inside}
	f.inside = l
	stmts = f.block(stmts)
	f.inside = l.around
	if !l.breaks || !l.functions {
		return stmts
	}
	never, use := &ast.FalseExpr{}, &ast.ReturnStmt{Exprs: []ast.Expr{name(at, "c")}}
	function := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{use}}
	made := locals(at, []string{"(f)"}, []ast.Expr{function})
	skip := &ast.IfStmt{Condition: never, Then: []ast.Stmt{made}}
	for _, node := range []ast.PositionHolder{never, use, function, skip} {
		place(at, node)
	}
	return append([]ast.Stmt{locals(at, []string{"(c)"}, nil), skip}, stmts...)
}

// outside begins a function. Its body cannot break out of the loops around it. It returns a function that ends it.
func (f *fencer) outside() (end func()) {
	around := f.inside
	for l := around; l != nil && !l.functions; l = l.around {
		l.functions = true
	}
	f.inside = nil
	return func() { f.inside = around }
}

// bound fences the start, the limit or the step of a numeric for. Unless it is a literal number, a function checks that it is a number.
func (f *fencer) bound(e ast.Expr, which int) ast.Expr {
	e = f.expr(e)
	switch e.(type) {
	case nil, *ast.NumberExpr, *ast.UnaryLenOpExpr:
		return e
	}
	f.ident(e, "(bound)")
	number := &ast.NumberExpr{Value: strconv.Itoa(which)}
	place(e, number)
	return call(e, "bound", one(e), number)
}
