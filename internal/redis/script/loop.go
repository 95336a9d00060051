package script

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// loop is what is known of a loop while its body is fenced.
type loop struct {
	around            *loop
	breaks, functions bool // what is in it
}

// body fences the body of a loop. A break leaves all blocks up to the loop, but this compiler forgets that their locals end there too: a
// function that was made in such a block would go on to use a register that is soon another local's. It does not forget the locals of the loop
// itself if a function uses one of them before the break; so such a loop gets a local, and a function that is never made.
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

// outside begins a function, in which no loop of those around it can be left, and returns a function that ends it.
func (f *fencer) outside() (end func()) {
	around := f.inside
	for l := around; l != nil && !l.functions; l = l.around {
		l.functions = true
	}
	f.inside = nil
	return func() { f.inside = around }
}

// bound is what a numeric for begins with, ends at, or adds: of those that are not written as numbers, a function sees to it that they are.
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
