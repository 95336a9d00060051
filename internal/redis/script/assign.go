package script

import (
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// assign writes an assignment in a form that this compiler cannot get wrong. The compiler puts a value into a local as soon as it has the value:
// before it has the other values, which may still read the local, and before it uses the local as a table. So a multiple assignment becomes
//
//	do local (t0), (k0) = f(), g() local (v0) = x ... end
//
// First come the parts of its targets, then its values, and then the single assignments, the last one first, as in Redis. Like Redis's compiler it
// reads a target's table or key that is a local only when it assigns to it, unless the same statement assigns to that local as well.
func (f *fencer) assign(s *ast.AssignStmt) ast.Stmt {
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		return f.assignOne(s)
	}
	a := f.newAssignment(s)
	for i, to := range s.Lhs {
		a.target(i, to, s.Lhs[i+1:])
	}
	last := len(s.Lhs) - 1
	var direct ast.Expr // the last value, if it needs no local
	values := slices.Clone(s.Rhs)
	if len(values) == len(s.Lhs) && !a.calls[last] {
		direct = one(values[last])
		if nested(direct) {
			direct = nil
		} else {
			values = values[:last]
		}
	}
	names := make([]string, len(s.Lhs))
	for i := range names {
		names[i] = "(v" + strconv.Itoa(i) + ")"
	}
	if direct != nil {
		names = names[:last]
	}
	a.local(names, values)
	for i := last; i >= 0; i-- {
		value := direct
		if i != last || direct == nil {
			value = name(s, "v"+strconv.Itoa(i))
		}
		a.store(i, value)
	}
	return a.done()
}

// assignOne writes the assignment of one value to one target.
func (f *fencer) assignOne(s *ast.AssignStmt) ast.Stmt {
	to, value := s.Lhs[0], s.Rhs[0]
	to.SetLine(max(to.Line(), value.Line(), value.LastLine()))
	at, ok := to.(*ast.AttrGetExpr)
	switch {
	case !ok && (!f.isLocal(to) || !nested(value)), ok && smallKey(at.Key):
		s.Rhs[0] = alone(value)
		return s
	case ok && !(calls(value) && (f.isLocal(at.Object) || f.isLocal(at.Key))):
		f.ident(s, "(set)")
		return set(at, at.Object, at.Key, value)
	}
	a := f.newAssignment(s)
	a.target(0, to, nil)
	a.local([]string{"(v0)"}, []ast.Expr{one(value)})
	a.store(0, name(s, "v0"))
	return a.done()
}

// assignment is an assignment that is being written as a block.
type assignment struct {
	*fencer
	s       *ast.AssignStmt
	end     ast.Node // where Redis says that the assignment happens: in its last line
	targets []ast.Expr
	calls   []bool // by target: a call of (set) assigns to it
	block   []ast.Stmt
}

func (f *fencer) newAssignment(s *ast.AssignStmt) *assignment {
	a := &assignment{fencer: f, s: s}
	place(s.Rhs[len(s.Rhs)-1], &a.end)
	a.end.SetLine(max(a.end.LastLine(), s.Line()))
	return a
}

// target adds a target, and computes the parts that must be known before the values; later are the targets after it.
func (a *assignment) target(i int, to ast.Expr, later []ast.Expr) {
	at, ok := to.(*ast.AttrGetExpr)
	call := ok && !smallKey(at.Key)
	if ok {
		number := strconv.Itoa(i)
		indexed := &ast.AttrGetExpr{Object: a.part("t"+number, at.Object, later), Key: at.Key}
		if call {
			indexed.Key = a.part("k"+number, at.Key, later)
		}
		place(&a.end, indexed)
		to = indexed
	}
	a.targets, a.calls = append(a.targets, to), append(a.calls, call)
}

// part returns a target's table or key: the expression itself if it is a local, or the name of a new local that holds it.
func (a *assignment) part(text string, e ast.Expr, later []ast.Expr) ast.Expr {
	assigned := func(to ast.Expr) bool {
		i, ok := to.(*ast.IdentExpr)
		return ok && i.Value == e.(*ast.IdentExpr).Value
	}
	if a.isLocal(e) && !slices.ContainsFunc(later, assigned) {
		return e
	}
	a.local([]string{"(" + text + ")"}, []ast.Expr{one(e)})
	return name(e, text)
}

// local declares locals of the block.
func (a *assignment) local(names []string, values []ast.Expr) {
	for _, name := range names {
		a.look(a.s, len(name))
	}
	a.block = append(a.block, locals(a.s, names, values))
}

// store assigns a value to a target.
func (a *assignment) store(i int, value ast.Expr) {
	if a.calls[i] {
		a.ident(a.s, "(set)")
		at := a.targets[i].(*ast.AttrGetExpr)
		a.block = append(a.block, set(&a.end, at.Object, at.Key, value))
		return
	}
	assigned := &ast.AssignStmt{Lhs: []ast.Expr{a.targets[i]}, Rhs: []ast.Expr{alone(value)}}
	place(&a.end, assigned)
	a.block = append(a.block, assigned)
}

func (a *assignment) done() ast.Stmt {
	do := &ast.DoBlockStmt{Stmts: a.block}
	place(a.s, do)
	return do
}

// alone returns e as the only value that is assigned to one target. If the target is the last parameter, the compiler puts the results of a call in
// parentheses, as ours are, into the target and the locals after it. Without the parentheses a call has one value here just as well.
func alone(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = false
	case *ast.Comma3Expr:
		e.AdjustRet = false
	}
	return e
}

// truth reports whether e is a literal, and whether it counts as true.
func truth(e ast.Expr) (value, known bool) {
	switch e := e.(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true, true
	case *ast.UnaryMinusOpExpr:
		_, number := e.Expr.(*ast.NumberExpr)
		return true, number
	case *ast.ArithmeticOpExpr:
		_, number := e.Lhs.(*ast.NumberExpr)
		_, both := e.Rhs.(*ast.NumberExpr)
		return true, number && both
	case *ast.FalseExpr, *ast.NilExpr:
		return false, true
	}
	return false, false
}

// decided returns the operand that e stands for if its first operand is a literal: for those the compiler makes jumps to wrong places. In Redis a
// local is then read where it is used, as if it stood there alone. But if the first operand is an inner "and" or "or" that needs a jump, Redis reads
// the local at once.
func (f *fencer) decided(e, inner *ast.LogicalOpExpr) ast.Expr {
	value, known := truth(e.Lhs)
	if !known {
		if o, ok := e.Lhs.(*ast.LogicalOpExpr); ok && o.Operator != e.Operator && f.isLocal(o.Lhs) && f.isLocal(e.Rhs) {
			if last, known := truth(o.Rhs); known && last == (e.Operator == "and") { // (a or 1) and b is b, whatever a is
				return e.Rhs
			}
		}
		return e
	}
	if value != (e.Operator == "and") {
		return e.Lhs
	}
	if inner != nil && f.isLocal(e.Rhs) {
		if last, known := truth(inner.Rhs); known && last == value {
			return e.Rhs
		}
		now := &ast.LogicalOpExpr{Operator: "or", Lhs: e.Rhs, Rhs: e.Rhs}
		place(e, now)
		return now
	}
	return one(e.Rhs)
}

// negated returns "not" of a literal as the literal that results, as Redis's compiler does.
func negated(e *ast.UnaryNotOpExpr) ast.Expr {
	value, known := truth(e.Expr)
	if !known {
		return e
	}
	var not ast.Expr = &ast.TrueExpr{}
	if value {
		not = &ast.FalseExpr{}
	}
	place(e, not)
	return not
}

// nested reports whether e is an "and" or "or" of other such expressions. In those the compiler puts a mere condition into the local.
func nested(e ast.Expr) bool {
	top, ok := e.(*ast.LogicalOpExpr)
	if !ok {
		return false
	}
	_, left := top.Lhs.(*ast.LogicalOpExpr)
	_, right := top.Rhs.(*ast.LogicalOpExpr)
	return left || right
}

// calls reports whether computing e may call a function of the script, which may assign to the locals around it.
func calls(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NumberExpr, *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.IdentExpr, *ast.FunctionExpr, *ast.Comma3Expr:
		return false
	case *ast.AttrGetExpr:
		return calls(e.Object) || calls(e.Key)
	case *ast.ArithmeticOpExpr:
		return calls(e.Lhs) || calls(e.Rhs)
	case *ast.TableExpr:
		return len(e.Fields) > 0
	case *ast.FuncCallExpr:
		if f, ok := e.Func.(*ast.IdentExpr); ok && f.Value[0] == '(' { // one of ours
			return slices.ContainsFunc(e.Args, calls)
		}
	}
	return true
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

// declare records the locals of a statement. The compiler mistakes "local f = function" for "local function f", whose body sees f itself, unless
// there is another value. The parser gives only the second form a last line.
func (f *fencer) declare(s *ast.LocalAssignStmt) {
	if len(s.Names) == 1 && len(s.Exprs) == 1 && s.LastLine() == 0 {
		if _, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			other := &ast.NilExpr{}
			place(s, other)
			s.Exprs = append(s.Exprs, other)
		}
	}
	f.local(s.Names...)
}
