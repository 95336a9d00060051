package ttlvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
	"time"

	"golang.org/x/tools/go/types/typeutil"
)

// act is what a call does to the TTL of its keys.
type act struct {
	call *ast.CallExpr
	name string // as a reader knows it: "Set", "Do INCR"
	does verdict
	keys []form // any of these; empty if unknown
	all  []form // of a helper: the parts of its key
	new  bool   // with ends: the call also creates the key, so later changes find a TTL
	why  string // what is wrong with the expiration

	taken takes // of a helper: the argument it uses as the expiration
}

// at returns the position to report.
func (a act) at() token.Pos {
	if sel, ok := ast.Unparen(a.call.Fun).(*ast.SelectorExpr); ok {
		return sel.Sel.Pos()
	}
	return a.call.Pos()
}

func (a act) message() string {
	const way = "or say why the key may stay, with //ttlguard:ok reason"
	switch {
	case a.why != "":
		return fmt.Sprintf("%s: %s: give it a TTL, %s", a.name, a.why, way)
	case a.does == depends:
		return fmt.Sprintf("%s creates a key without a TTL if there is none, and no Expire of it follows in this function: add one, %s", a.name, way)
	}
	return fmt.Sprintf("%s leaves a key without a TTL, and no Expire of it follows in this function: add one, %s", a.name, way)
}

// goRedis is the prefix of go-redis's import paths.
const goRedis = "github.com/redis/go-redis/v"

func fromGoRedis(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && strings.HasPrefix(n.Obj().Pkg().Path(), goRedis)
}

// method returns the name of the go-redis method that is called, or "". A method of another type counts too if it takes a context first and returns
// some *redis.Cmd: programs declare interfaces with just the methods they need.
func method(info *types.Info, call *ast.CallExpr) string {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok {
		return ""
	}
	s := f.Signature()
	if s.Recv() == nil || s.Params().Len() < 2 || s.Results().Len() != 1 || !fromGoRedis(s.Results().At(0).Type()) || s.Params().At(0).Type().String() != "context.Context" {
		return ""
	}
	return f.Name()
}

// actOf returns what a call of go-redis does.
func (u *unit) actOf(call *ast.CallExpr) (act, bool) {
	name := method(u.info, call)
	if name == "Do" {
		return u.do(call)
	}
	c, ok := commands[name]
	if !ok || len(call.Args) <= max(c.key, c.ttl) {
		return act{}, false
	}
	a := act{call: call, name: name, does: c.does}
	switch {
	case c.does == scripted:
		a.keys = u.listed(call.Args[c.key])
	case c.field != "":
		if field := fieldOf(call.Args[c.key], c.field); field != nil {
			a.keys = []form{u.form(field)}
		}
	case c.many > 0 && call.Ellipsis.IsValid(): // unknown
	case c.many > 0:
		for i := c.key; i < len(call.Args); i += c.many {
			a.keys = append(a.keys, u.form(call.Args[i]))
		}
	default:
		a.keys = []form{u.form(call.Args[c.key])}
	}
	if c.ttl > 0 {
		switch a.why = u.wrong(name, call.Args[c.ttl]); {
		case a.why == "":
			a.does, a.new = ends, name != "GetEx"
		case a.why == keeps:
			a.does, a.why = harmless, ""
		}
	}
	if c.does == removes && !onPipeline(u.info, call) {
		a.does = harmless // the process may die before it
	}
	return a, a.does != harmless
}

// keeps marks an expiration that leaves the key's TTL unchanged.
const keeps = "KeepTTL"

// wrong returns what is wrong with an expiration, and "" if it is right or computed at run time.
func (u *unit) wrong(name string, e ast.Expr) string {
	if tv := u.info.Types[e]; tv.Value != nil && tv.Value.Kind() == constant.Int {
		n, exact := constant.Int64Val(tv.Value)
		switch d := time.Duration(n); {
		case !exact:
			return ""
		case n == 0 && name == "GetEx":
			return "an expiration of 0 takes the key's TTL away"
		case name == "GetEx" && n < 0:
			return keeps // GETEX without an option
		case n == 0 && name == "SetEx":
			return "Redis refuses an expiration of 0"
		case n == 0:
			return "an expiration of 0 leaves the key without a TTL"
		case n == -1 && name == "SetNX":
			return "the key is new, so that redis.KeepTTL has no TTL to keep"
		case n == -1 && name != "SetEx" && !strings.HasPrefix(name, "Restore"):
			return keeps
		case n < 0:
			return fmt.Sprintf("an expiration of %d leaves the key without a TTL", n)
		case d < time.Millisecond:
			return fmt.Sprintf("an expiration of %v is less than Redis can count: is it a number of seconds, as in %d*time.Second?", d, n)
		}
		return ""
	}
	fields := map[string][]string{
		"SetArgs": {"TTL", "ExpireAt", "KeepTTL"}, "MSetEX": {"Expiration"}, "IncrEXInt": {"Expiration"}, "IncrEXFloat": {"Expiration"},
	}[name]
	if lit := literal(e); fields != nil && lit != nil && (len(lit.Elts) == 0 || isKeyed(lit)) {
		for _, f := range fields {
			value := fieldOf(lit, f)
			if value == nil || isZero(u.info, value) {
				continue
			}
			if f == "KeepTTL" {
				return keeps
			}
			return ""
		}
		return fmt.Sprintf("neither %s is set", strings.Join(fields, " nor "))
	}
	return ""
}

func isZero(info *types.Info, e ast.Expr) bool {
	tv := info.Types[e]
	if tv.IsNil() {
		return true
	}
	return tv.Value != nil && (tv.Value.Kind() == constant.Int && constant.Sign(tv.Value) == 0 || tv.Value.Kind() == constant.Bool && !constant.BoolVal(tv.Value))
}

// literal returns the composite literal that e is, or points to.
func literal(e ast.Expr) *ast.CompositeLit {
	e = ast.Unparen(e)
	if and, ok := e.(*ast.UnaryExpr); ok && and.Op == token.AND {
		e = ast.Unparen(and.X)
	}
	lit, _ := e.(*ast.CompositeLit)
	return lit
}

func isKeyed(lit *ast.CompositeLit) bool {
	_, ok := lit.Elts[0].(*ast.KeyValueExpr)
	return ok
}

// fieldOf returns what a composite literal has for a field.
func fieldOf(e ast.Expr, name string) ast.Expr {
	if lit := literal(e); lit != nil {
		for _, elt := range lit.Elts {
			if pair, ok := elt.(*ast.KeyValueExpr); ok {
				if id, ok := pair.Key.(*ast.Ident); ok && id.Name == name {
					return pair.Value
				}
			}
		}
	}
	return nil
}

// listed are the elements of a slice that is written out.
func (u *unit) listed(e ast.Expr) (all []form) {
	if lit := literal(u.resolve(e)); lit != nil {
		for _, elt := range lit.Elts {
			all = append(all, u.form(elt))
		}
	}
	return all
}

func onPipeline(info *types.Info, call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || info.Types[sel.X].Type == nil {
		return false
	}
	name := info.Types[sel.X].Type.String()
	return fromGoRedis(info.Types[sel.X].Type) && strings.Contains(name[strings.LastIndex(name, ".")+1:], "Pipeline")
}

// alone are commands that need no more than a key.
var alone = map[string]bool{"incr": true, "decr": true, "persist": true, "pfadd": true, "pfmerge": true}

// do is Do: a command in words.
func (u *unit) do(call *ast.CallExpr) (act, bool) {
	word := func(i int) (string, bool) { // lower case, if it is a constant
		v := u.info.Types[call.Args[i]].Value
		if v == nil || v.Kind() != constant.String {
			return "", false
		}
		return strings.ToLower(constant.StringVal(v)), true
	}
	if len(call.Args) < 3 || call.Ellipsis.IsValid() {
		return act{}, false
	}
	name, _ := word(1)
	a := act{call: call, name: "Do " + strings.ToUpper(name), keys: []form{u.form(call.Args[2])}}
	switch c := commands[raw[name]]; {
	case c.many > 0, len(call.Args) == 3 && !alone[name]: // without what it writes, Redis refuses it
		return act{}, false
	case name == "eval" || name == "evalsha" || name == "fcall":
		a.does, a.keys = scripted, nil
		for _, e := range call.Args[2:] {
			a.keys = append(a.keys, u.form(e))
		}
	case name == "setex" || name == "psetex":
		a.does, a.new = ends, true
	case name == "set":
		a.does = leavesNone
		for i := 4; i < len(call.Args); i++ {
			switch option, known := word(i); {
			case option == "ex", option == "px", option == "exat", option == "pxat":
				a.does, a.new = ends, true
			case (!known || option == "keepttl") && a.does == leavesNone:
				return act{}, false
			}
		}
	default:
		a.does = c.does
	}
	return a, a.does != harmless
}
