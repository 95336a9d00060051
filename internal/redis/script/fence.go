package script

import (
	"fmt"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// The Lua machine has no limits of its own: a deep expression overflows the stack of the Go process, and a concatenation or a list with one
// large index takes all memory there is; recover helps against neither. So a script is fenced before it is compiled: its depth is measured,
// and operations that can take much memory in one instruction are turned into calls of functions here, which account for it:
//
//	a .. b .. c      (concat)(a, b, c)
//	t[k] = v         (set)(t, k, v)
//	{[k] = v}        {[(key)(k)] = v}
//	{1, 2, ...}      (list)({1, 2, ...}), where a list is long: see mend
//
// Scripts cannot write those names.

const (
	maxLevels = 200    // nested expressions and blocks, as in Redis
	maxDepth  = 10_000 // also counting what Redis parses in a loop: a + b + c, else if, f()()
	maxSource = 1 << 20
)

// tooDeep is the panic of fence for a script that is nested too deep.
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

type fencer struct {
	levels, depth int
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
		f.locals += len(s.Names)
	case *ast.FuncCallStmt:
		s.Expr = f.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = f.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition, s.Stmts = f.expr(s.Condition), f.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Stmts, s.Condition = f.block(s.Stmts), f.expr(s.Condition)
	case *ast.IfStmt:
		f.branches(s)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = f.expr(s.Init), f.expr(s.Limit), f.expr(s.Step)
		defer f.scope()()
		f.locals += 4
		s.Stmts = f.block(s.Stmts)
	case *ast.GenericForStmt:
		f.exprs(s.Exprs)
		defer f.scope()()
		f.locals += 3 + len(s.Names)
		s.Stmts = f.block(s.Stmts)
	case *ast.FuncDefStmt:
		f.exprs([]ast.Expr{s.Name.Func, s.Name.Receiver})
		f.constant(s, "s"+s.Name.Method)
		s.Func = f.expr(s.Func).(*ast.FunctionExpr)
	case *ast.ReturnStmt:
		f.exprs(s.Exprs)
	case *ast.GotoStmt:
		panic(refused{s.Line(), "'=' expected near '" + s.Label + "'"})
	case *ast.LabelStmt:
		panic(refused{s.Line(), "unexpected symbol near ':'"})
	}
	return stmt
}

// branches is an if with its elseifs; the parser puts each elseif into the else of the one before.
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
		e.Lhs, e.Rhs = f.first(e.Lhs), f.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = f.first(e.Lhs), f.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = f.first(e.Lhs), f.expr(e.Rhs)
		if f.depth%foldable == 0 {
			return unfolded(e)
		}
	case *ast.StringConcatOpExpr:
		return f.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = f.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = f.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = f.expr(e.Expr)
	case *ast.FunctionExpr:
		defer f.function(e)()
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

// assign turns assignments to an index that is not a plain name into calls.
func (f *fencer) assign(s *ast.AssignStmt) ast.Stmt {
	plain := true
	for _, to := range s.Lhs {
		if at, ok := to.(*ast.AttrGetExpr); ok && !smallKey(at.Key) {
			plain = false
		}
	}
	if plain {
		return s
	}
	for range s.Lhs {
		f.ident(s, "(set)")
	}
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		to := s.Lhs[0].(*ast.AttrGetExpr)
		return set(s, to.Object, to.Key, s.Rhs[0])
	}
	// A multiple assignment evaluates its targets first, then the values, and assigns the last one first.
	var block, after []ast.Stmt
	values := locals(s, nil, s.Rhs)
	for i, to := range s.Lhs {
		number := strconv.Itoa(i)
		values.Names = append(values.Names, "(v"+number+")")
		value := name(s, "v"+number)
		if at, ok := to.(*ast.AttrGetExpr); ok {
			block = append(block, locals(s, []string{"(t" + number + ")", "(k" + number + ")"}, []ast.Expr{at.Object, at.Key}))
			after = append(after, set(s, name(s, "t"+number), name(s, "k"+number), value))
			continue
		}
		assigned := &ast.AssignStmt{Lhs: []ast.Expr{to}, Rhs: []ast.Expr{value}}
		place(s, assigned)
		after = append(after, assigned)
	}
	block = append(block, values)
	for i := range after {
		block = append(block, after[len(after)-1-i])
	}
	do := &ast.DoBlockStmt{Stmts: block}
	place(s, do)
	return do
}

// smallKey reports whether an index is a literal that cannot make a list large.
func smallKey(key ast.Expr) bool {
	switch key := key.(type) {
	case *ast.StringExpr:
		return true
	case *ast.NumberExpr:
		n, err := strconv.Atoi(key.Value)
		return err == nil && n < 1000
	}
	return false
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
