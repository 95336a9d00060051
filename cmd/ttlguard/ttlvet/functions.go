package ttlvet

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// program is the package under analysis.
type program struct{ pass *analysis.Pass }

// unit is a function with its closures, or another top-level declaration. Its calls are read in source order.
type unit struct {
	info *types.Info
	file *ast.File
	body ast.Node
	fn   *types.Func // nil for other declarations
	vars map[types.Object]assigned
}

// helps is what callers need to know about a function: which parameters make up a key that it gives a TTL, and which parameter is that TTL. The
// receiver is parameter -1.
type helps struct {
	Ends  [][]int // for each key that gets a TTL, the parameters it is made of
	Takes []takes
}

type takes struct {
	Param int    // passed on as an expiration, and not used otherwise
	Name  string // to which method
	Key   []int  // the parameters that the key is made of
}

// AFact marks helps as an analysis.Fact.
func (*helps) AFact() {}

func (h *helps) String() string {
	text := ""
	if len(h.Ends) > 0 {
		text += fmt.Sprintf(" ends %v", h.Ends)
	}
	for _, t := range h.Takes {
		text += fmt.Sprintf(" takes %d for %s", t.Param, t.Name)
	}
	return strings.TrimSpace(text)
}

func (p *program) units() (all []*unit) {
	for _, f := range p.pass.Files {
		for _, d := range f.Decls {
			u := &unit{info: p.pass.TypesInfo, file: f, body: d}
			if fn, ok := d.(*ast.FuncDecl); ok {
				if fn.Body == nil {
					continue
				}
				u.fn, _ = u.info.Defs[fn.Name].(*types.Func)
			}
			interesting := false
			ast.Inspect(d, func(n ast.Node) bool {
				_, call := n.(*ast.CallExpr)
				interesting = interesting || call
				return !interesting
			})
			if interesting {
				u.vars = assignments(u.info, d)
				all = append(all, u)
			}
		}
	}
	return all
}

// acts returns what the calls of a unit do, in source order; deferred calls come at the end of their function.
func (p *program) acts(u *unit) (all []act) {
	when := u.deferred()
	ast.Inspect(u.body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if a, ok := u.actOf(call); ok {
			all = append(all, a.each()...)
			return true
		}
		callee := typeutil.StaticCallee(u.info, call)
		if callee == nil || callee.Origin() == u.fn {
			return true
		}
		var h helps
		if !p.pass.ImportObjectFact(callee.Origin(), &h) {
			return true
		}
		for _, t := range h.Takes {
			if t.Param >= len(call.Args) {
				continue
			}
			if why := u.wrong(t.Name, call.Args[t.Param]); why != "" && why != keeps {
				all = append(all, act{call: call, name: callee.Name() + ", which calls " + t.Name, does: leavesNone, all: u.arguments(call, t.Key), why: why})
				return true
			}
		}
		for _, params := range h.Ends {
			if of := u.arguments(call, params); of != nil {
				a := act{call: call, name: callee.Name(), does: ends, all: of}
				for _, t := range h.Takes {
					if slices.Equal(t.Key, params) {
						a.taken = t
					}
				}
				all = append(all, a)
			}
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b act) int { return when(a.call).compare(when(b.call)) })
	return all
}

// moment is when a call runs, as far as source order tells.
type moment struct {
	at    token.Pos // of the call, or the end of the function that defers it
	since token.Pos
	call  token.Pos
}

func (m moment) compare(n moment) int {
	return cmp.Or(int(m.at-n.at), int(n.since-m.since), int(m.call-n.call)) // the last deferred call runs first
}

// deferred returns a function that tells when a call of the unit runs.
func (u *unit) deferred() func(*ast.CallExpr) moment {
	type span struct {
		of  *ast.DeferStmt
		end token.Pos // of the function around it
	}
	var spans []span
	var path []ast.Node
	ast.Inspect(u.body, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		if d, ok := n.(*ast.DeferStmt); ok {
			end := u.body.End()
			for _, around := range path {
				if f, ok := around.(*ast.FuncLit); ok {
					end = f.End()
				}
			}
			spans = append(spans, span{d, end})
		}
		path = append(path, n)
		return true
	})
	return func(call *ast.CallExpr) moment {
		for _, s := range spans { // the outermost is the first
			f, _ := ast.Unparen(s.of.Call.Fun).(*ast.FuncLit)
			if call == s.of.Call || f != nil && f.Pos() <= call.Pos() && call.End() <= f.End() {
				return moment{s.end, s.of.Pos(), call.Lparen}
			}
		}
		return moment{call.Lparen, 0, call.Lparen}
	}
}

// each splits a write of several keys into one write per key.
func (a act) each() (all []act) {
	if len(a.keys) < 2 || a.does != depends && a.does != leavesNone {
		return []act{a}
	}
	for i := range a.keys {
		one := a
		one.keys = a.keys[i : i+1]
		all = append(all, one)
	}
	return all
}

// arguments returns the forms of a call's arguments for some parameters.
func (u *unit) arguments(call *ast.CallExpr, params []int) (all []form) {
	for _, i := range params {
		switch sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); {
		case i < 0 && ok:
			all = append(all, u.form(sel.X))
		case i < 0 || i >= len(call.Args):
			return nil
		default:
			all = append(all, u.form(call.Args[i]))
		}
	}
	return all
}

// unended returns the writes of a unit whose keys get no TTL in it.
func (p *program) unended(u *unit) (out []act) {
	all := p.acts(u)
	for i, w := range all {
		if w.does != depends && w.does != leavesNone {
			continue
		}
		ended := slices.ContainsFunc(all[i+1:], func(a act) bool { return w.endedBy(a) }) ||
			w.does == depends && slices.ContainsFunc(all[:i], func(a act) bool { return a.does == ends && a.new && w.endedBy(a) })
		if !ended && !slices.ContainsFunc(out, func(told act) bool { return told.call == w.call }) {
			out = append(out, w)
		}
	}
	return out
}

// endedBy reports whether a gives, or may give, the key of w a TTL: w is reported only if no call can.
func (w act) endedBy(a act) bool {
	switch a.does {
	case ends, removes, scripted:
	default:
		return false
	}
	if len(w.all) > 0 || len(a.all) > 0 {
		return w.mayShare(a)
	}
	if len(w.keys) == 0 || len(a.keys) == 0 {
		return a.does != removes && !a.new
	}
	need := equal // a SET or DEL concerns its own key only
	if a.does != removes && !a.new {
		need = perhaps
	}
	return slices.ContainsFunc(a.keys, func(k form) bool { return compare(w.keys[0], k) >= need })
}

// mayShare reports whether w and a, of which at least one is a helper's call, may have the same key.
func (w act) mayShare(a act) bool {
	if len(w.all) > 0 && len(a.all) > 0 {
		return slices.EqualFunc(w.all, a.all, func(x, y form) bool { return x.text == y.text })
	}
	keys, parts := w.keys, a.all
	if len(w.all) > 0 {
		keys, parts = a.keys, w.all
	}
	return len(keys) == 0 || slices.ContainsFunc(keys, func(k form) bool {
		return !slices.ContainsFunc(parts, func(part form) bool { return !strings.Contains(k.text, part.text) })
	})
}

// learn records what callers need to know about a unit, and reports whether that is more than before.
func (p *program) learn(u *unit) bool {
	if u.fn == nil {
		return false
	}
	s := u.fn.Signature()
	params := map[types.Object]int{}
	if r := s.Recv(); r != nil {
		params[r] = -1
	}
	for i := range s.Params().Len() {
		params[s.Params().At(i)] = i
	}
	var now, was helps
	for _, a := range p.acts(u) {
		if a.does != ends {
			continue
		}
		var of []int
		for _, k := range append(a.keys, a.all...) {
			of = append(of, u.parameters(k.root, params)...)
		}
		slices.Sort(of)
		if of = slices.Compact(of); len(of) > 0 && !slices.ContainsFunc(now.Ends, func(is []int) bool { return slices.Equal(is, of) }) {
			now.Ends = append(now.Ends, of)
		}
		if i, name := u.takenFrom(a, params); name != "" {
			now.Takes = append(now.Takes, takes{i, name, of})
		}
	}
	if len(now.Ends)+len(now.Takes) == 0 {
		return false
	}
	p.pass.ImportObjectFact(u.fn, &was)
	if len(was.Ends) == len(now.Ends) && len(was.Takes) == len(now.Takes) {
		return false
	}
	p.pass.ExportObjectFact(u.fn, &now)
	return true
}

// parameters returns the parameters that an expression is made of.
func (u *unit) parameters(e ast.Expr, params map[types.Object]int) (all []int) {
	if e == nil {
		return nil
	}
	seen := map[types.Object]bool{}
	var look func(e ast.Expr)
	look = func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := u.info.ObjectOf(id)
			if i, ok := params[o]; ok {
				all = append(all, i)
			} else if was := u.vars[o]; o != nil && !seen[o] {
				seen[o] = true
				for _, from := range []ast.Expr{was.value, was.ranged} {
					if from != nil {
						look(from)
					}
				}
			}
			return true
		})
	}
	look(e)
	return all
}

// takenFrom returns the parameter that a call uses as its expiration, if the function does not use it otherwise, and the method that receives it.
func (u *unit) takenFrom(a act, params map[types.Object]int) (int, string) {
	at, name := commands[a.name].ttl, a.name
	if a.taken.Name != "" {
		at, name = a.taken.Param, a.taken.Name
	}
	if at == 0 || len(a.call.Args) <= at {
		return 0, ""
	}
	id, ok := ast.Unparen(a.call.Args[at]).(*ast.Ident)
	if !ok {
		return 0, ""
	}
	o := u.info.ObjectOf(id)
	i, ok := params[o]
	if !ok || i < 0 {
		return 0, ""
	}
	uses := 0
	ast.Inspect(u.body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && u.info.Uses[id] == o {
			uses++
		}
		return true
	})
	if uses != 1 {
		return 0, ""
	}
	return i, name
}
