package engine

import "strings"

// The values of random Lua programs. A product or a quotient that is -0 is 0 here, so what shows the sign of zero gets 0+n: a divisor, and the
// numbers that become texts.

// target is what can be assigned a value of a type. No list gets a hole: what its length is then depends on how the machine keeps it.
func (w *luaWriter) target(kind byte) string {
	if w.IntN(3) > 0 {
		return w.name(kind)
	}
	t := w.name('t')
	if kind == 'n' {
		return t + w.pick("[1]", "[(L(1))]", ".a", "[s1]", "["+w.name('s')+"]")
	}
	return t + w.pick(".a", ".b", "['a']", "[s1]", "["+w.name('s')+"]")
}

func (w *luaWriter) list(n int) string {
	var all []string
	for range n {
		all = append(all, w.expr(w.kind(), 2))
	}
	return strings.Join(all, ",")
}

// list1 is a list of values of one type; between them stands what is given, before the comma.
func (w *luaWriter) list1(kind byte, n int, after string) string {
	var all []string
	for range n {
		all = append(all, w.expr(kind, 2))
	}
	return strings.Join(all, after+",")
}

// full turns what is assigned to an element of a list into a value, if it is not one.
func full(to, value string) string {
	if strings.Contains(to, "[") && !strings.HasSuffix(to, "']") {
		return "(" + value + " or 6)"
	}
	return value
}

// expr returns an expression of a type: one of the names', or 'b', a condition.
func (w *luaWriter) expr(kind byte, depth int) string {
	if depth <= 0 || w.IntN(6) == 0 {
		switch {
		case kind == 'b':
			return w.pick("true", "false", "nil", w.name('n'), "not "+w.name('s'))
		case kind == 'n' && w.IntN(3) == 0:
			return w.pick("4", "1", "2", "-3", "10", "0.1", "1e3", "0x1F", "7.25", "1e15", "'010'", "' 0x10 '", "'2'")
		case kind == 's' && w.IntN(2) == 0:
			return w.pick("''", "'b'", `"x\065\n"`, "[[long]]", "[==[a]]]==]", "'Hello World'", "'k=v, w=z'", `'\0z'`, "'12'")
		}
		return w.name(kind)
	}
	d := depth - 1
	if w.IntN(5) == 0 && kind != 'b' { // conditions of values
		return w.pick("("+w.expr('b', d)+" and "+w.expr(kind, d)+" or "+w.expr(kind, d)+")", "("+w.name(kind)+" or "+w.expr(kind, d)+")",
			"(("+w.expr(kind, d)+" or "+w.name(kind)+") and "+w.expr(kind, d)+")", "("+w.name(kind)+" and ("+w.name(kind)+" and "+w.expr(kind, d)+"))",
			"L("+w.expr(kind, d)+")")
	}
	n, s, t := func() string { return w.expr('n', d) }, func() string { return w.expr('s', d) }, func() string { return w.expr('t', d) }
	switch kind {
	case 'n':
		return []func() string{
			func() string { return n() + w.pick("+", " - ", "*", "%") + n() },
			func() string { return "(" + n() + w.pick("+", " - ", "*") + n() + ")" + w.pick("+", "%", "*") + n() },
			func() string { return n() + "/(" + n() + "+0)" },
			func() string { return " -(" + n() + ")" },
			func() string { return "(math.floor(" + n() + ")%50)^" + w.pick("2", "0", "1", "'2'") },
			func() string { return "#" + w.name('t') },
			func() string { return "#(" + s() + ")" },
			func() string { return w.name('f') + "(" + n() + ")" },
			func() string { return "(" + w.name('f') + "())" },
			func() string { return w.pick("math.floor", "math.abs", "math.ceil") + "(" + n() + ")" },
			func() string { return w.pick("math.max", "math.min") + "(" + n() + "," + n() + ")" },
			func() string {
				return "(tonumber(" + s() + w.pick("", ",16", ",2", ",36", ",10") + ") or " + n() + ")"
			},
			func() string { return "(tonumber(" + w.name('t') + "[" + n() + "]) or 4)" },
			func() string {
				if !w.vararg {
					return "1"
				}
				return w.pick("select('#',...)", "(tonumber((...)) or 5)", "#{(...) or 1,2}")
			},
			func() string { return "(" + s() + "):byte() or 0" },
			func() string { return "select(2,(" + s() + "):gsub('%a','%0'))" },
			func() string { return "((" + s() + "):find('o',1,true) or 0)" },
			func() string { return "(select(-1," + n() + "," + n() + "))" },
			func() string { return "unpack({" + n() + " or 1," + n() + "})" },
		}[w.among(19)]()
	case 's':
		return []func() string{
			func() string { return s() + ".." + s() },
			func() string { return s() + "..tostring(" + n() + ").." + s() },
			func() string {
				return "(" + s() + "):sub(" + w.pick("1", "2", "-2", "0") + "," + w.pick("2", "-1", "3") + ")"
			},
			func() string { return "(" + s() + "):" + w.pick("upper()", "lower()", "reverse()", "rep(2)") },
			func() string { return "string.format('" + w.pick("%5.1f", "%g", "%.3f", "%e") + "',0+" + n() + ")" },
			func() string { return "string.format('" + w.pick("%s", "%5s", "%q", "%-4s|") + "'," + s() + ")" },
			func() string { return "string.format('" + w.pick("%d", "%03d", "%x") + "',math.abs(" + n() + ")%1000)" },
			func() string { return "tostring(" + n() + ")" },
			func() string { return "type(" + w.expr(w.kind(), d) + ")" },
			func() string { return "table.concat({0+" + n() + "," + s() + "}," + w.pick("','", "''", "s1") + ")" },
			func() string {
				return "((" + s() + "):gsub(" + w.pick("'%w'", "'(%a)(%d*)'", "'[a-k]'", "''", "'.-o'", "'%s*$'") + "," + w.pick("'%0%0'", "'-'", "{a='1',k=2}", "string.upper", "function(c) return c..'.' end") + "))"
			},
			func() string {
				return "((" + s() + "):match('" + w.pick("(%w+)=", "^.", "%d+", "(.)$") + "') or " + s() + ")"
			},
			func() string { return "tostring((" + t() + ").a)" },
			func() string { return "string.char(65+math.abs(math.floor(" + w.name('n') + "))%26)" },
		}[w.among(14)]()
	case 't':
		return []func() string{
			func() string { return "{" + n() + " or 1," + n() + " or 2," + n() + " or 3}" },
			func() string { return "{(" + n() + "),a=" + s() + ",b=" + w.name('t') + "}" },
			func() string { t := w.name('t'); return "{" + t + "[1] or 1," + t + "}" },
			func() string { return "{" + w.name('f') + "(" + n() + ")}" },
			func() string { return "{[1]=" + n() + " or 1,[2]=" + s() + ",[ " + s() + "]=1}" },
		}[w.among(5)]()
	case 'f':
		if !strings.Contains(w.b.String(), "f1") || w.IntN(3) == 0 {
			return w.name('f')
		}
		return "function(" + w.pick("", "n1", "...") + ") if T() then return 1 end " + w.pick("", w.name('n')+"="+w.name('n')+"+1 ") + "return " + w.pick("n1", w.name('n'), "n1+1,2", "#t1") + " end"
	}
	return []func() string{
		func() string { return n() + w.pick("<", "<=", ">", ">=", "==", "~=") + n() },
		func() string { return s() + w.pick("<", "<=", ">", ">=", "==", "~=") + s() },
		func() string { return w.expr(w.kind(), d) + w.pick("==", "~=") + w.expr(w.kind(), d) },
		func() string { return "not (" + w.expr('b', d) + ")" },
		func() string { return "(" + w.expr('b', d) + w.pick(" and ", " or ") + w.expr('b', d) + ")" },
		func() string { return "(" + w.expr('b', d) + " and " + w.expr('b', d) + " or " + w.expr('b', d) + ")" },
	}[w.among(6)]()
}
