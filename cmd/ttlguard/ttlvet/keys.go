package ttlvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// form is a key as it is compared: constants by their value, variables that are assigned once by what they were given.
type form struct {
	text string
	sure bool // one of another form is another key, and not the same in other words
	root ast.Expr
}

// comparison of two keys.
type comparison int

const (
	other comparison = iota
	perhaps
	equal
)

func compare(a, b form) comparison {
	switch {
	case a.text == b.text:
		return equal
	case a.sure && b.sure:
		return other
	}
	return perhaps
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
func (u *unit) form(e ast.Expr) form { f := u.formAt(e, 0); f.root = e; return f }

func (u *unit) formAt(e ast.Expr, depth int) form {
	if v := u.info.Types[e].Value; v != nil {
		return form{text: v.ExactString(), sure: true}
	}
	if e = u.resolve(e); depth > 20 {
		return form{text: types.ExprString(e)}
	}
	parts := func(between string, all ...ast.Expr) form {
		texts, sure := make([]string, len(all)), true
		for i, one := range all {
			f := u.formAt(one, depth+1)
			texts[i], sure = f.text, sure && f.sure
		}
		return form{text: strings.Join(texts, between), sure: sure}
	}
	if v := u.info.Types[e].Value; v != nil {
		return form{text: v.ExactString(), sure: true}
	}
	switch e := e.(type) {
	case *ast.Ident:
		o := u.info.ObjectOf(e)
		return form{text: e.Name, sure: o != nil && u.vars[o].times == 0}
	case *ast.SelectorExpr:
		if _, ok := u.info.Uses[e.Sel].(*types.Func); ok || u.info.Selections[e] != nil {
			f := parts("", e.X)
			return form{text: f.text + "." + e.Sel.Name, sure: f.sure}
		}
		return form{text: types.ExprString(e), sure: true} // of a package
	case *ast.BinaryExpr:
		f := parts(" "+e.Op.String()+" ", e.X, e.Y)
		return f
	case *ast.CallExpr:
		f := parts(", ", e.Args...)
		if u.info.Types[e.Fun].IsType() && len(e.Args) == 1 { // string(b)
			return f
		}
		of := form{text: types.ExprString(e.Fun), sure: true}
		if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok {
			of = u.formAt(sel, depth+1)
		}
		return form{text: of.text + "(" + f.text + ")", sure: of.sure && f.sure}
	case *ast.StarExpr:
		f := parts("", e.X)
		return form{text: "*" + f.text, sure: f.sure}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return form{text: strconv.Quote(text), sure: true}
		}
	}
	return form{text: types.ExprString(e)}
}
