package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
)

// A luaWriter writes random Lua programs that end and, mostly, do not fail. The first letter of a name is its type: number, string, table,
// function. There are few names, so that locals hide others and functions share them.
type luaWriter struct {
	*rand.Rand
	b      strings.Builder
	names  []string // in scope
	indent int
	loop   bool // break is allowed
	vararg bool
	size   int               // statements that may still be written
	drawn  map[uintptr][]int // by place: how often each of its choices was drawn; nil if nobody counts
}

// drawLua returns a program.
func drawLua(r *rand.Rand, drawn map[uintptr][]int) string {
	w := &luaWriter{Rand: r, size: 8 + r.IntN(14), vararg: true, drawn: drawn}
	w.line("local n1,n2,s1,t1=1,2.5,'a',{7,8,9,a='k'}")
	w.line("local function f1(...) if T() then return 1 end n1=(n1 or 1)+1 return n1,... end")
	w.names = []string{"n1", "n2", "s1", "t1", "f1"}
	for w.size > 0 {
		w.stmt(3)
	}
	w.line("L(%s)", strings.Join(w.seen(), ","))
	w.line("return %s", w.list(1+w.IntN(3)))
	return fmt.Sprintf(luaFrame, w.b.String())
}

func (w *luaWriter) line(format string, args ...any) {
	w.b.WriteString(strings.Repeat(" ", w.indent))
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

// pick draws one of some texts, and among a number below n. Both count what they draw by the place they are called from.
func (w *luaWriter) pick(of ...string) string { return of[w.count(w.IntN(len(of)), len(of))] }
func (w *luaWriter) among(n int) int          { return w.count(w.IntN(n), n) }

func (w *luaWriter) count(drawn, of int) int {
	if w.drawn != nil {
		pc, _, _, _ := runtime.Caller(2)
		if w.drawn[pc] == nil {
			w.drawn[pc] = make([]int, of)
		}
		w.drawn[pc][drawn]++
	}
	return drawn
}

// seen are the visible names, each once.
func (w *luaWriter) seen() []string {
	var all []string
	once := map[string]bool{}
	for _, n := range w.names {
		if !once[n] {
			once[n] = true
			all = append(all, n)
		}
	}
	return all
}

// name returns a visible name of a type.
func (w *luaWriter) name(kind byte) string {
	for range 30 {
		if n := w.names[w.IntN(len(w.names))]; n[0] == kind {
			return n
		}
	}
	return string(kind) + "1"
}

func (w *luaWriter) fresh(kind byte) string { return fmt.Sprintf("%c%d", kind, 1+w.IntN(4)) }
func (w *luaWriter) kind() byte             { return "nnnssttf"[w.IntN(8)] }

// body writes a block with some statements.
func (w *luaWriter) body(depth int, before ...string) {
	outer := len(w.names)
	w.names = append(w.names, before...)
	w.indent++
	for range 1 + w.IntN(3) {
		w.stmt(depth - 1)
	}
	w.indent--
	w.names = w.names[:outer]
}

// inLoop writes the body of a loop, which a break may end.
func (w *luaWriter) inLoop(depth int, before ...string) {
	outer := w.loop
	w.loop = true
	w.body(depth, before...)
	w.loop = outer
}

// cut shortens what was assigned to those targets that hold texts.
func (w *luaWriter) cut(targets ...string) {
	for _, to := range targets {
		if to[0] == 's' || strings.Contains(to, ".") || strings.Contains(to, "[") {
			w.line("%s=C(%s)", to, to)
		}
	}
}

func (w *luaWriter) stmt(depth int) {
	w.size--
	choice := w.IntN(42)
	if depth <= 0 {
		choice = w.IntN(18 + 4)
		if choice >= 18 {
			choice += 16
		}
	}
	switch w.count(choice, 42) {
	case 0, 1, 2:
		k := w.kind()
		n, e := w.fresh(k), w.expr(k, 3)
		w.line("local %s=%s", n, e)
		w.names = append(w.names, n)
		w.cut(n)
	case 3, 4:
		var names, values []string
		for range 1 + w.IntN(3) {
			k := w.kind()
			names, values = append(names, w.fresh(k)), append(values, w.expr(k, 2))
		}
		w.line("local %s=%s", strings.Join(names, ","), strings.Join(values, ","))
		w.names = append(w.names, names...)
		w.cut(names...)
	case 5, 6, 7:
		k := w.kind()
		n := w.name(k)
		w.line("%s=%s", n, w.expr(k, 3))
		w.cut(n)
	case 8, 9, 10, 11:
		var to, values []string
		for range 2 + w.IntN(2) {
			k := w.kind()
			to, values = append(to, w.target(k)), append(values, w.expr(k, 2))
		}
		switch w.among(8) {
		case 0:
			values = append(values, w.expr(w.kind(), 1))
		case 1:
			to, values = []string{w.name('n'), w.name('t') + ".a"}, []string{w.name('f') + "(" + w.expr('n', 1) + "," + w.expr('n', 1) + ")"}
		}
		for i := range to {
			values[min(i, len(values)-1)] = full(to[i], values[min(i, len(values)-1)])
		}
		w.line("%s=%s", strings.Join(to, ","), strings.Join(values, ","))
		w.cut(to...)
	case 12, 13:
		to := w.target('n')
		w.line("%s=%s", to, full(to, w.expr('n', 3)))
		t := w.name('t')
		w.line("%s[%s]=%s or 6", t, w.pick("#"+t+"+1", "1+math.floor(tonumber(n1) or 2)%(#"+t+"+1)"), w.name('n'))
	case 14:
		w.line("L(%s)", w.list(1+w.IntN(3)))
	case 15:
		w.line("%s", w.pick("table.insert("+w.name('t')+",("+w.expr('n', 2)+" or 2))", "table.insert("+w.name('t')+",1,("+w.expr('n', 1)+" or 3))",
			"table.sort("+w.name('t')+",function(a,b) return tostring(a)<tostring(b) end)", "L(table.remove("+w.name('t')+"))", w.name('f')+"("+w.list(2)+")"))
	case 16:
		if w.loop {
			w.line("if %s then local %s=%s local f1=function() return n1 end %s.f=f1 break end", w.expr('b', 2), w.fresh('n'), w.expr('n', 1), w.name('t'))
		} else {
			w.line("L(pcall(%s,%s))", w.name('f'), w.list(1))
		}
	case 17:
		w.line("if %s then %s.f=%s L(%s.f(1)) end", w.expr('b', 2), "t1", w.name('f'), "t1")
	case 18, 19:
		w.line("if %s then", w.expr('b', 3))
		w.body(depth)
		if w.IntN(3) == 0 {
			w.line("elseif %s then", w.expr('b', 2))
			w.body(depth)
		}
		if w.IntN(2) == 0 {
			w.line("else")
			w.body(depth)
		}
		w.line("end")
	case 20:
		w.line("do")
		w.body(depth)
		w.line("end")
	case 21, 22:
		n := w.fresh('n')
		w.line("for %s=%s,%s%s do if T() then break end", n, w.pick("1", "'2'", "n1%4", "#t1", "0.5"), w.pick("3", "'3'", "1+2", "#s1%4", "2"), w.pick("", "", ",1", ",0.7", ",'1'", ",-1"))
		w.inLoop(depth, n)
		w.line("end")
	case 23:
		n, v := w.fresh('n'), w.fresh('n')
		w.line("for %s,%s in ipairs({%s}) do if T() then break end", n, v, w.list1('n', 3, ""))
		w.inLoop(depth, n, v)
		w.line("end")
	case 24:
		s := w.fresh('s')
		w.line("for %s in (%s):gmatch('%%w') do if T() then break end", s, w.expr('s', 1))
		w.inLoop(depth, s)
		w.line("end")
	case 25, 26:
		w.line("while not T() and (%s) do", w.expr('b', 2))
		w.inLoop(depth)
		w.line("end")
	case 27, 28:
		w.line("repeat local n4,s4=%s,C(%s)", w.expr('n', 1), w.expr('s', 1))
		outer := len(w.names)
		w.names = append(w.names, "n4", "s4")
		w.inLoop(depth)
		w.line("until T() or %s", w.expr('b', 2))
		w.names = w.names[:outer]
	case 29:
		n := w.name('t')
		w.line("local q={} for i=1,3 do local n3=i q[i]=function(...) if T() then return 1 end n3=n3+%s return n3,... end end L(q[1](),q[2](),q[1]()) %s.f=q[2]", w.expr('n', 1), n)
	case 30:
		w.line("L(pcall(function() if T() then return 1 end")
		outer, varargs := w.loop, w.vararg
		w.loop, w.vararg = false, false
		w.body(depth)
		w.line(" %s end))", w.pick("", "error(s1)", "error({})", "error(s1,0)", "return "+w.list(2), "return t1.zz.y", "return n1<s1", "return n1..{}"))
		w.loop, w.vararg = outer, varargs
	case 34: // values change their places
		a, b := w.name('n'), w.name('n')
		w.line("%s", w.pick(a+","+b+"="+b+","+a, a+","+b+"="+b, "local "+a+","+b+"="+b+","+a, a+","+b+"=f1("+b+"),"+a+"%5"))
	case 35:
		t := w.name('t')
		w.line("%s.a,%s.b=%s.b,%s.a", t, t, t, t)
	case 36: // what fails, and what an error carries
		w.line("L(pcall(function() return %s end))", w.pick("1+{}", "{}<{}", "'a'<1", "nil..'x'", "#n1", "n1()", "s1.x.y", "zz", "-{}", "('x'):rep({})", "tonumber(1,99)", "error(n1)",
			"error(nil)", "error(s1,2)", "setmetatable(1,2)", "ipairs()", "math.floor('x')", "table.concat({{}})", "'x'+1", "{}^2", "s1:nope()", "string.rep()", "select(0)", "error({err=s1})"))
	case 37:
		w.line("L(%s)", w.pick("math.huge", "2^53+1", "1e308*10", "1e-320", "math.huge==-math.huge", "5%-3", "-5%3", "5.5%-2", "0.1+0.2", "1e100", "123456789012345678", "1e14", "-1e15+0.5",
			"math.floor(-0.5)", "math.fmod(-5,3)", "math.sqrt(2)", "math.modf(-3.7)", "select(-2,1,2,3)", "tonumber('z',36)", "tonumber('8',8)", "tonumber('')", "tonumber('1e')", "tonumber('0x')",
			"string.format('%5.2s|%-5d|%+d','abc',n1%99,3)", "string.format('%c%o%X%i',65,8,255,3)", "('a,b,,c'):find(',',-3)", "('x y z'):gsub('%s','_',1)", "('abc'):byte(1,-1)", "unpack({1,2,3},2)",
			"table.remove({1,2,3},1)", "('key=val'):match('(%w+)=(%w+)')", "('f(a(b)c)d'):match('%b()')", "('THE (quick) fox'):find('%((%a+)%)')", "('abc'):find('b()')", "rawequal(t1,t1),rawget(t1,1)",
			"#'\\z\\065\\10'", "next({})", "type(next)", "('x'):rep(0)", "('x'):rep(-1)", "('abc'):sub(0,-2)", "('%d'):format('12')", "('hello'):gsub('l+',{ll='L'})", "('abc'):gsub('%w','%%%0')"))
	case 38:
		n, e := w.name('t'), w.expr('n', 2)
		varargs := w.vararg
		w.vararg = false
		w.line("local t2=setmetatable({%s},{__index=%s,__add=function(a,b) if T() then return 1 end return n1 end,__call=function(self,...) return select('#',...),... end,", e, n)
		w.line(" __concat=function(a,b) return type(a)..type(b) end,__eq=function() return true end,__lt=function(a,b) return %s end,__unm=function() return %s end,", w.expr('b', 1), w.expr('n', 1))
		w.line(" __newindex=function(t,k,v) if type(k)~='string' or #k<9 then rawset(t,k,v) end end}) L(t2+1,2+t2,t2(%s),t2..'x','y'..t2,t2<t2,-t2,t2.a,t2==setmetatable({},getmetatable(t2)))", w.list(2))
		w.vararg = varargs
	case 39:
		w.line("function t1:m(n3,...) if T() then return 1 end n3=n3 or 1 n3=n3%%7 n3=(%s) self.c=n3 return n3,... end L(t1:m(%s))", w.expr('n', 2), w.list(2))
	case 40:
		w.line("local function f2(n3) if T() then return 1 end n3=tonumber(n3) or 1 if n3<2 then return 1 end local n4=n3 n3=(n3 - 1) return %s end L(f2(%d))", w.pick("n4*f2(n3)", "f2(n3)+f2(n4-2)", "f2(n3)", "(f2(n3)),n4"), 1+w.IntN(6))
		w.names = append(w.names, "f2")
	case 41:
		w.line("local n4=0 for k,v in pairs(%s) do n4=n4+(type(k)=='number' and k or #k) end L(n4) L((loadstring(%s) or type)(1))", w.name('t'), w.pick("'return ...'", "'return 1,2'", "'return ('", "[[local a,b=1,2 a,b=b,a return a..b]]"))
	default:
		n := w.fresh('f')
		form := w.pick("local function %s(%s)", "local %s=function(%s)", "%s=function(%s)")
		if form[0] == '%' {
			n = w.name('f')
		}
		w.function(n, form, depth)
		if form[0] != '%' {
			w.names = append(w.names, n)
		}
	}
}

// function writes a function that returns numbers.
func (w *luaWriter) function(n, form string, depth int) {
	params := w.pick("", "n1", "n2,s2", "...", "n3,...")
	w.line(form+" if T() then return 1 end", n, params)
	var own []string
	for p := range strings.SplitSeq(params, ",") {
		if p != "" && p != "..." {
			own = append(own, p)
			w.line(" %s=%s or %s", p, p, w.pick("1", "n1", "2"))
			if p[0] == 's' {
				w.line(" s2=C(tostring(s2))")
			} else {
				w.line(" %s=tonumber(%s) or 3", p, p)
			}
		}
	}
	outer, varargs := w.loop, w.vararg
	w.loop, w.vararg = false, strings.HasSuffix(params, "...")
	w.body(depth, own...)
	names := len(w.names)
	w.names = append(w.names, own...)
	w.line(" return %s or 4 end", w.list1('n', 1+w.IntN(3), " or 5"))
	w.names = w.names[:names]
	w.loop, w.vararg = outer, varargs
}
