package script

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// The Lua machine has no limits of its own. A deep expression overflows the stack of the Go process, and a concatenation, or a list with one
// large index, takes all memory there is; recover helps against neither. So a script is fenced before it is compiled: its depth is measured, and
// operations that can take much memory in one instruction become calls of functions of this package, which account for it:
//
//	a .. b .. c      (concat)(a, b, c)
//	t[k] = v         (set)(t, k, v)
//	{[k] = v}        {[(key)(k)] = v}
//	{1, 2, ...}      (list)({1, 2, ...}), where a list is long: see mend
//
// Whatever this compiler gets wrong, or this machine computes differently from Redis's, is also written in another way:
//
//	a, b = b, a      do local (v0) = b b = a a = (v0) end: see assign
//	a % b, a ^ b     (mod)(a, b), (pow)(a, b), or (mod of)(b, a) where a is a local and b a call
//	for i = a, b     for i = (bound)(a, 1), (bound)(b, 2), unless a number is written there
//	local f = function: see declare; break: see body
//
// Scripts cannot write those names.

const (
	maxLevels = 200    // nested expressions and blocks, as in Redis
	maxDepth  = 10_000 // also counting what Redis parses in a loop: a + b + c, else if, f()()
	maxSource = 1 << 20
)

// tooDeep is the panic of fence for a script that is nested too deeply.
type tooDeep struct{ line int }

func (e tooDeep) Error() string {
	return fmt.Sprintf("%s:%d: chunk has too many syntax levels", chunkName, max(e.line, 1))
}

// fence rewrites a parsed script as described above.
func fence(chunk []ast.Stmt) (fenced []ast.Stmt, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case tooDeep:
			err = e
		case refused:
			err = e
		default:
			panic(e)
		}
	}()
	f := &fencer{}
	return f.block(chunk), nil
}

// computed maps operators to the functions that fenced scripts call instead.
var computed = map[string]string{"%": "mod", "^": "pow"}

type fencer struct {
	levels, depth int
	method        bool  // the next function is a method: it has a parameter self
	inside        *loop // the innermost loop of the function
	names
}

// enter goes one level deeper, or only one step (level 0) where Redis parses in a loop; the caller calls leave with the same level.
func (f *fencer) enter(at ast.PositionHolder, level int) {
	f.levels += level
	if f.depth++; f.levels > maxLevels || f.depth > maxDepth {
		panic(tooDeep{at.Line()})
	}
}

func (f *fencer) leave(level int) {
	f.levels -= level
	f.depth--
}

func (f *fencer) block(stmts []ast.Stmt) []ast.Stmt {
	if len(stmts) == 0 {
		return stmts
	}
	f.enter(stmts[0], 1)
	defer f.leave(1)
	defer f.scope()()
	for i := range stmts {
		stmts[i] = f.stmt(stmts[i])
	}
	return stmts
}

func (f *fencer) stmt(stmt ast.Stmt) ast.Stmt {
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		f.exprs(s.Lhs)
		f.exprs(s.Rhs)
		return f.assign(s)
	case *ast.LocalAssignStmt:
		f.exprs(s.Exprs)
		f.declare(s)
	case *ast.FuncCallStmt:
		s.Expr = f.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = f.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition, s.Stmts = f.expr(s.Condition), f.body(s, s.Stmts)
	case *ast.RepeatStmt:
		s.Stmts, s.Condition = f.body(s, s.Stmts), f.expr(s.Condition)
	case *ast.IfStmt:
		f.branches(s)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = f.bound(s.Init, 1), f.bound(s.Limit, 2), f.bound(s.Step, 3)
		defer f.scope()()
		f.local("", "", "", s.Name)
		s.Stmts = f.body(s, s.Stmts)
	case *ast.GenericForStmt:
		f.exprs(s.Exprs)
		defer f.scope()()
		f.local("", "", "")
		f.local(s.Names...)
		s.Stmts = f.body(s, s.Stmts)
	case *ast.FuncDefStmt:
		f.exprs([]ast.Expr{s.Name.Func, s.Name.Receiver})
		f.constant(s, "s"+s.Name.Method)
		f.method = s.Name.Func == nil
		s.Func = f.expr(s.Func).(*ast.FunctionExpr)
	case *ast.ReturnStmt:
		f.exprs(s.Exprs)
	case *ast.BreakStmt:
		if f.inside != nil {
			f.inside.breaks = true
		}
	case *ast.GotoStmt:
		panic(refused{s.Line(), "'=' expected near '" + s.Label + "'"})
	case *ast.LabelStmt:
		panic(refused{s.Line(), "unexpected symbol near ':'"})
	}
	return stmt
}

// branches fences an if with its elseifs; the parser puts each elseif into the else of the one before.
func (f *fencer) branches(s *ast.IfStmt) {
	steps := 0
	for {
		f.enter(s, 0)
		f.look(s, f.depth) // the compiler goes through all those before it
		steps++
		s.Condition, s.Then = f.expr(s.Condition), f.block(s.Then)
		next, ok := (*ast.IfStmt)(nil), false
		if len(s.Else) == 1 {
			next, ok = s.Else[0].(*ast.IfStmt)
		}
		if !ok {
			s.Else = f.block(s.Else)
			break
		}
		s = next
	}
	for range steps {
		f.leave(0)
	}
}

func (f *fencer) exprs(all []ast.Expr) {
	for i := range all {
		all[i] = f.expr(all[i])
	}
}

// expr fences an expression one level below; first is for the first operand, which Redis parses in a loop.
func (f *fencer) expr(e ast.Expr) ast.Expr  { return f.within(e, 1) }
func (f *fencer) first(e ast.Expr) ast.Expr { return f.within(e, 0) }

func (f *fencer) within(expr ast.Expr, level int) ast.Expr {
	if expr == nil {
		return nil
	}
	f.enter(expr, level)
	defer f.leave(level)
	switch e := expr.(type) {
	case *ast.NumberExpr:
		f.constant(e, "n"+e.Value)
	case *ast.StringExpr:
		f.constant(e, "s"+e.Value)
	case *ast.IdentExpr:
		f.ident(e, e.Value)
	case *ast.AttrGetExpr:
		e.Object, e.Key = f.first(e.Object), f.expr(e.Key)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			field.Key, field.Value = f.expr(field.Key), f.expr(field.Value)
			if field.Key != nil && !smallKey(field.Key) {
				f.ident(field.Key, "(key)")
				field.Key = call(field.Key, "key", field.Key)
			}
		}
		if len(e.Fields) > longList {
			f.ident(e, "(list)")
			return call(e, "list", e)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = f.first(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = f.first(e.Receiver)
			f.constant(e, "s"+e.Method)
		}
		f.exprs(e.Args)
	case *ast.LogicalOpExpr:
		inner, _ := e.Lhs.(*ast.LogicalOpExpr)
		e.Lhs, e.Rhs = f.first(e.Lhs), f.expr(e.Rhs)
		return f.decided(e, inner)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = f.first(e.Lhs), f.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = f.first(e.Lhs), f.expr(e.Rhs)
		if function := computed[e.Operator]; function != "" {
			f.ident(e, "("+function+")")
			if f.isLocal(e.Lhs) && calls(e.Rhs) { // the call may change the local before it is read
				f.ident(e, "("+function+swapped+")")
				return call(e, function+swapped, one(e.Rhs), e.Lhs)
			}
			return call(e, function, one(e.Lhs), one(e.Rhs))
		}
		if f.depth%foldable == 0 {
			return unfolded(e)
		}
	case *ast.StringConcatOpExpr:
		return f.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = f.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = f.expr(e.Expr)
		return negated(e)
	case *ast.UnaryLenOpExpr:
		e.Expr = f.expr(e.Expr)
	case *ast.FunctionExpr:
		defer f.outside()()
		defer f.function(e, f.method)()
		f.method = false
		e.Stmts = f.block(e.Stmts)
	}
	return expr
}

// concat turns a chain of concatenations, which nests to the right, into a call.
func (f *fencer) concat(e *ast.StringConcatOpExpr) ast.Expr {
	f.ident(e, "(concat)")
	var operands []ast.Expr
	levels := 0
	for {
		operands = append(operands, one(f.first(e.Lhs)))
		rest, ok := e.Rhs.(*ast.StringConcatOpExpr)
		if !ok {
			operands = append(operands, one(f.expr(e.Rhs)))
			break
		}
		f.enter(rest, 1)
		levels++
		e = rest
	}
	for range levels {
		f.leave(1)
	}
	return call(e, "concat", operands...)
}

func locals(at ast.PositionHolder, names []string, values []ast.Expr) *ast.LocalAssignStmt {
	s := &ast.LocalAssignStmt{Names: names, Exprs: values}
	place(at, s)
	return s
}

func set(at ast.PositionHolder, t, key, value ast.Expr) ast.Stmt {
	s := &ast.FuncCallStmt{Expr: call(at, "set", one(t), one(key), one(value))}
	place(at, s)
	return s
}

func call(at ast.PositionHolder, function string, args ...ast.Expr) ast.Expr {
	c := &ast.FuncCallExpr{Func: name(at, function), Args: args, AdjustRet: true}
	place(at, c)
	return c
}

// name is a variable that scripts cannot name.
func name(at ast.PositionHolder, text string) ast.Expr {
	e := &ast.IdentExpr{Value: "(" + text + ")"}
	place(at, e)
	return e
}

// place gives a new node the line numbers of the node it replaces.
func place(from, to ast.PositionHolder) {
	to.SetLine(from.Line())
	to.SetLastLine(max(from.Line(), from.LastLine()))
}

// one limits an operand with several values, a call or "...", to the first.
func one(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}
