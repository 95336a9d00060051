package ttlvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// form is a key as it is compared: constants by their value, variables that are assigned once by what they were given.
type form struct {
	text   string
	open   []types.Object // variables in it that have one value now, and another then
	opaque bool           // it holds an expression that is not looked into
	root   ast.Expr
}

// comparison of two keys.
type comparison int

const (
	other comparison = iota
	perhaps
	equal
)

func compare(a, b form) comparison {
	if a.text == b.text {
		return equal
	}
	shared := slices.ContainsFunc(a.open, func(o types.Object) bool { return slices.Contains(b.open, o) })
	if open := len(a.open)+len(b.open) > 0; a.opaque || b.opaque || open && !shared {
		return perhaps
	}
	return other // it is made in another way, of the same
}

// assigned is what is known of a variable of a function.
type assigned struct {
	times  int
	param  bool     // it had a value before
	value  ast.Expr // that it was given, if times is 1 and it is known
	ranged ast.Expr // that it runs over
}

// assignments counts what the variables in a body are given.
func assignments(info *types.Info, body ast.Node) map[types.Object]assigned {
	all := map[types.Object]assigned{}
	give := func(to ast.Expr, value, ranged ast.Expr) {
		id, ok := ast.Unparen(to).(*ast.Ident)
		if !ok {
			return
		}
		if o := info.ObjectOf(id); o != nil {
			all[o] = assigned{all[o].times + 1, all[o].param, value, ranged}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				var value ast.Expr
				if len(n.Lhs) == len(n.Rhs) && (n.Tok == token.DEFINE || n.Tok == token.ASSIGN) {
					value = n.Rhs[i]
				}
				give(to, value, nil)
			}
		case *ast.ValueSpec:
			for i, to := range n.Names {
				if i < len(n.Values) && len(n.Names) == len(n.Values) {
					give(to, n.Values[i], nil)
				} else if len(n.Values) > 0 {
					give(to, nil, nil)
				}
			}
		case *ast.RangeStmt:
			for _, to := range []ast.Expr{n.Key, n.Value} {
				if to != nil {
					give(to, nil, n.X)
				}
			}
		case *ast.FuncType:
			for _, field := range n.Params.List {
				for _, id := range field.Names {
					all[info.ObjectOf(id)] = assigned{param: true}
				}
			}
		case *ast.IncDecStmt:
			give(n.X, nil, nil)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				give(n.X, nil, nil) // whoever has the address
			}
		}
		return true
	})
	return all
}

// resolve follows variables that are assigned once to what they were given.
func (u *unit) resolve(e ast.Expr) ast.Expr {
	for range 10 {
		e = ast.Unparen(e)
		id, ok := e.(*ast.Ident)
		if !ok {
			break
		}
		was := u.vars[u.info.ObjectOf(id)]
		if was.times != 1 || was.param || was.value == nil {
			break
		}
		e = was.value
	}
	return e
}

// form returns the form of a key.
func (u *unit) form(e ast.Expr) form {
	f := form{root: e}
	f.text = u.text(e, &f, 0)
	return f
}

// text returns how an expression is compared, and adds to f the variables in it that may be anything.
func (u *unit) text(e ast.Expr, f *form, depth int) string {
	if v := u.info.Types[e].Value; v != nil {
		return v.ExactString()
	}
	e = u.resolve(e)
	if v := u.info.Types[e].Value; v != nil {
		return v.ExactString()
	}
	if depth > 20 { // a variable that is made of itself
		f.opaque = true
		return types.ExprString(e)
	}
	parts := func(all ...ast.Expr) string {
		texts := make([]string, len(all))
		for i, one := range all {
			texts[i] = u.text(one, f, depth+1)
		}
		return strings.Join(texts, ", ")
	}
	switch e := e.(type) {
	case *ast.Ident:
		if o := u.info.ObjectOf(e); u.vars[o].times > 0 {
			f.open = append(f.open, o)
		}
		return e.Name
	case *ast.SelectorExpr:
		if u.info.Selections[e] != nil {
			return parts(e.X) + "." + e.Sel.Name
		}
		return types.ExprString(e) // of a package
	case *ast.BinaryExpr:
		return parts(e.X) + " " + e.Op.String() + " " + parts(e.Y)
	case *ast.CallExpr:
		if u.info.Types[e.Fun].IsType() && len(e.Args) == 1 { // string(b)
			return parts(e.Args[0])
		}
		return parts(e.Fun) + "(" + parts(e.Args...) + ")"
	case *ast.StarExpr:
		return "*" + parts(e.X)
	case *ast.IndexExpr:
		f.opaque = true
		return parts(e.X) + "[" + parts(e.Index) + "]"
	}
	f.opaque = true
	return types.ExprString(e)
}
