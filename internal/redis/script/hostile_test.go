package script_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/script"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// Scripts that crash other Lua machines, and with them the process. The replies are Redis 8's.
func TestNoScriptEndsTheProcess(t *testing.T) {
	effort.Alone(t)
	times, many := strings.Repeat, effort.Times(20_000, 1_000_000)
	const tooDeep = "ERR Error compiling script (new function): user_script:1: chunk has too many syntax levels"
	for _, c := range []struct{ source, want string }{
		{"return #{string.byte(string.rep('x',2000000),1,-1)}", "-ERR user_script:1: stack overflow (string slice too long) script: "},
		{"return unpack({},1,2000000)", "-ERR user_script:1: too many results to unpack script: "},
		{"return unpack({},-2^31,2^31-1)", "-ERR user_script:1: too many results to unpack script: "},
		{"return unpack({},1,7990)==nil", ":1\r\n"},
		{"local t={} t[1]=t return t", times("*1\r\n", 7995) + "-ERR reached lua stack limit\r\n"},
		{"local t={} for i=1,5 do t={t} end return t", times("*1\r\n", 5) + "*0\r\n"},
		{"local t={1} for i=1,60 do t={t,t} end return t", "-ERR not enough memory script: "},
		{"local t={1} for i=1,60 do t={t,t} end return cjson.encode(t)", "-ERR not enough memory script: "},
		{"return #cjson.decode('['..string.rep('[1],',20000)..'1]')", "-ERR not enough memory script: "},
		{"return #cjson.decode('['..string.rep('{\"a\":1},',5000)..'1]')", "-ERR not enough memory script: "},
		{"return #cjson.decode('['..string.rep('[1],',500)..'1]')", ":501\r\n"},
		{"return #redis.call('*20000\\r\\n'..string.rep('*0\\r\\n',20000))", "-ERR not enough memory script: "},
		{"return #redis.call('*4000\\r\\n'..string.rep('+a\\r\\n',4000))", "-ERR not enough memory script: "},
		{"return #redis.call('*500\\r\\n'..string.rep('*0\\r\\n',500))", ":500\r\n"},
		{"return #string.rep('x',1e11)", "-ERR not enough memory script: "},
		{"return #string.rep('x',1e300)", ":0\r\n"},
		{"return #string.rep('',1e11)", ":0\r\n"},
		{"return string.rep('x',-1)", "$0\r\n\r\n"},
		{"local s='x' while true do s=s..s end", "-ERR not enough memory script: "},
		{"local s=string.rep('x',1e6) while true do s=s..s..s..s..s end", "-ERR not enough memory script: "},
		{"local s=string.rep('x',2e6) local t={s,s,s} return #table.concat(t)", "-ERR not enough memory script: "},
		{"local s=string.rep('x',1e5) return s:gsub('x',s)", "-ERR not enough memory script: "},
		{"local s=string.rep('x',1e5) return s:gsub('x',function() return s end)", "-ERR not enough memory script: "},
		{"local s=string.rep('x',1e6) return redis.call('echo',s,s,s,s,s,s,s,s,s,s,s,s,s,s)", "-ERR not enough memory script: "},
		{"local t={} for i=1,100 do t[i]={} t[i][999999]=1 end", "-ERR not enough memory script: "},
		{"local t={} for i=1,100 do t[i]={[999999]=1} end", "-ERR not enough memory script: "},
		{"local t={} for i=1,100 do t[i]={} rawset(t[i],999999,1) end", "-ERR not enough memory script: "},
		{"local t={} for i=1,100 do t[i]={} table.insert(t[i],999999,1) end", "-ERR not enough memory script: "},
		{"local t={} for i=1,100 do t[i]={} local a a,t[i][999999]=1,1 end", "-ERR not enough memory script: "},
		{"local ok, why = pcall(string.rep, 'x', 1e11) return why", "-ERR not enough memory script: "},
		{"return " + times("not ", many) + "1", "-" + tooDeep},
		{"return " + times("not ", 150) + "1", ":1\r\n"},
		{"return " + times("{", 250) + "1" + times("}", 250), "-" + tooDeep},
		{"return " + times("(", 190) + "1" + times(")", 190), ":1\r\n"},
		{"return " + times("'a'..", 300) + "'a'", "-" + tooDeep},
		{"return " + times("2^", 300) + "1", "-" + tooDeep},
		{"return 1" + times("+1", 5_000), ":5001\r\n"},
		{"return 1" + times("+1", many), "-" + tooDeep},
		{times("do ", 300) + times("end ", 300), "-" + tooDeep},
		{"if false then " + times("elseif false then ", 3_000) + "end return 1", ":1\r\n"},
		{"local f return f" + times("()", many), "-" + tooDeep},
		{"return loadstring('return '..string.rep('not ',5000)..'1')", "$-1\r\n"},
		{"return loadstring('return #string.rep(\"x\",1e11)')()", "-ERR not enough memory script: "},
		{times(" ", 9<<20), "-ERR Error compiling script (new function): user_script:1: not enough memory"},
		{"local function f() return 1+f() end return f()", "-ERR user_script:1: stack overflow script: "},
		{"local function f() return pcall(f) end return f()", ":1\r\n"},
		{"local function f(n) local ok,e=pcall(f,n+1) if not ok then error(e,0) end end f(1)", "-ERR C stack overflow script: "},
		{"local function f(...) return f(" + times("1,", 90) + "unpack({...})) end return f()", "-ERR user_script:1: too many results to unpack script: "},
		{"return setmetatable({},{__index=function(t,k) return t[k] end}).x", "-ERR user_script:1: stack overflow script: "},
		{"local a={} a.__index=a setmetatable(a,a) return a.x", "-ERR user_script:1: loop in gettable script: "},
		{"return string.find('a',string.rep('(',40)..string.rep(')',40))", "-ERR user_script:1: too many captures script: "},
		{"return string.find(string.rep('a',99999),'^.-b')", "$-1\r\n"},
		{"return string.format('%1000d',1)", "-ERR user_script:1: invalid format (width or precision too long) script: "},
		{"local t={} for i=1,9000 do t[i]='a' end return #table.concat(t,',')", ":17999\r\n"},
		{"local t={} t[nil]=1", "-ERR user_script:1: table index is nil script: "},
		{"local t={} t[0/0]=1", "-ERR user_script:1: table index is NaN script: "},
		{"return cjson.decode(string.rep('[',2000)..string.rep(']',2000))", "-ERR user_script:1: Found too many nested data structures (1001) at character 1001 script: "},
	} {
		if strings.Contains(c.want, "memory") {
			runtime.GC() // the growth of the heap is checked
		}
		if got := eval(t, c.source); !strings.HasPrefix(got, c.want) {
			t.Errorf("%.80s:\n got %.120q\nwant %.120q", c.source, got, c.want)
		}
	}
}

// A reply is written in one go, which cannot be interrupted, so its length is limited even if it takes little memory.
func TestLongReplies(t *testing.T) {
	effort.Alone(t)
	for _, c := range []struct{ source, want string }{
		{"local t={} for i=1,300 do t[i]=1 end t[1]=t return t", "-ERR not enough memory script: "},
		{"local t={} for i=1,300 do t[i]=i end t[1]={map=t} return {map=t}", "-ERR not enough memory script: "},
		{"local t={} t[{set=t}]=1 for i=1,300 do t[i]=i end return {set=t}", "-ERR not enough memory script: "},
		{"local t={} for i=1,20000 do t[i]=i end return {t,t}", "*2\r\n*20000\r\n:1\r\n"},
	} {
		if got := evalOn(t, script.NewMachine(echo{}), c.source); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n got %.120q\nwant %.120q", c.source, got, c.want)
		}
	}
}

// Scripts that this compiler would take long for are refused, because it cannot be interrupted. Redis accepts those marked as ours.
func TestNoScriptIsLongInTheCompiler(t *testing.T) {
	effort.Alone(t)
	times := strings.Repeat
	const refused = "-ERR Error compiling script (new function): user_script:1: "
	var keys, calls, locals strings.Builder
	for i := range 7_000 {
		fmt.Fprintf(&keys, "a%d=1,", i)
		fmt.Fprintf(&calls, "if false then x%d() end ", i)
	}
	for i := range 190 {
		fmt.Fprintf(&locals, "local v%d ", i)
	}
	for _, c := range []struct{ name, source, want string }{
		{"constants (ours)", "local t={" + keys.String() + "} return 1", refused + "constant table overflow"},
		{"globals (ours)", calls.String() + "return 1", refused + "constant table overflow"},
		{"methods (ours)", "local t " + strings.ReplaceAll(calls.String(), "x", "t:x") + "return 1", refused + "constant table overflow"},
		{"constants of functions (ours)", times("do local function f() return {"+keys.String()[:29_850]+"} end end ", 4), refused + "constant table overflow"},
		{"constants built in a script (ours)", "local t={} for i=1,7000 do t[i]='a'..i..'=1' end local f,e=loadstring('return {'..table.concat(t,',')..'}') return e",
			"$38\r\nuser_script:1: constant table overflow\r\n"},
		{"names among locals (ours)", times("local function f() "+locals.String(), 50) + times("y()", 3_000) + times(" end", 50), refused + "constant table overflow"},
		{"elseif (ours)", "if x then " + times("elseif x then ", 6_500) + "end", refused + "constant table overflow"},
		{"keys that Redis's users have", "local t={" + keys.String()[:29_850] + "} return 1", ":1\r\n"},
		{"arithmetic", "local x=1 return x" + times("+1", 2_000), ":2001\r\n"},
		{"arithmetic that fails", "local x={} return 1" + times("+1", 200) + "+x", "-ERR user_script:1: attempt to perform arithmetic on a table value"},
		{"goto", "do goto x ::x:: end", refused + "'=' expected near 'x'"},
		{"a label", "::x:: return 1", refused + "unexpected symbol near ':'"},
		{"a loop's body", "for i=1,2 do " + times("i=i ", 132_000) + "end return 1", refused + "control structure too long"},
		{"a loop's body that fits", "for i=1,2 do " + times("i=i ", 1_000) + "end return 1", ":1\r\n"},
	} {
		if got := eval(t, c.source); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n got %.120q\nwant %.120q", c.name, got, c.want)
		}
	}
}

// Assignments, protected calls and loops are written in another way before they are compiled. However large they are, they do what they say, or
// are refused.
func TestLargeStatements(t *testing.T) {
	effort.Alone(t)
	times := strings.Repeat
	names := func(format string, from, to int) string {
		var all []string
		for i := from; i <= to; i++ {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	const refused = "-ERR Error compiling script (new function): user_script:1: "
	for _, c := range []struct{ name, source, want string }{
		{"nested multiple assignments", "local a,b=1,2 " + times("do local c=a a,b=b,a ", 90) + times("end ", 90) + "return {a,b}", "*2\r\n:1\r\n:2\r\n"},
		{"nested too deep", "local a,b=1,2 " + times("do a,b=b,a ", 300) + times("end ", 300) + "return a", refused + "chunk has too many syntax levels"},
		{"150 locals, the first 40 turned round", "local " + names("a%d", 1, 150) + "=" + names("%d", 1, 150) + " " + names("a%d", 1, 40) + "=" + names("a%d", 2, 40) + ",a1 return {a1,a39,a40,a41}", "*4\r\n:2\r\n:40\r\n:1\r\n:41\r\n"},
		{"195 locals that change places", "local " + names("a%d", 1, 195) + "=" + names("%d", 1, 195) + times(" a1,a195=a195,a1", 99) + " return {a1,a195}", "*2\r\n:195\r\n:1\r\n"},
		{"250 locals", "local " + names("a%d", 1, 250) + "=1", "-ERR Error compiling script (new function): "},
		{"thousands of assignments", "local a,b,t=1,2,{} " + times("a,b=b,a t.x,t.y=a,b ", 3_001) + "return {a,b,t.x,t.y}", "*4\r\n:2\r\n:1\r\n:2\r\n:1\r\n"},
		{"10,000 targets", "local t={} " + names("t[%d]", 1, 10_000) + "=1", refused},
		{"10,000 values", "local a a=" + names("%d", 1, 10_000) + " return a", refused},
		{"pcall in pcall", "local function f(n) if n==0 then return 7 end local ok,v=pcall(f,n-1) return v end return f(150)", ":7\r\n"},
		{"pcalls that fail in each other", "local function f(n) if n==0 then error('x',0) end local ok,v=pcall(f,n-1) error(v..n%10,0) end local ok,v=pcall(f,20) return v", "$21\r\nx12345678901234567890\r\n"},
		{"closures after a break", "local q={} for i=1,50 do for j=1,9 do local x=i*j if j==3 then q[i]=function() x=x+1 return x end break end end end local a,b,c=9,9,9 return {q[1](),q[50](),q[50]()}", "*3\r\n:4\r\n:151\r\n:152\r\n"},
	} {
		if got := eval(t, c.source); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n got %.120q\nwant %.120q", c.name, got, c.want)
		}
	}
}

// A list literal has all its elements, however many (an instruction of this machine can number 25,550).
func TestLongLists(t *testing.T) {
	effort.Alone(t)
	times := strings.Repeat
	for _, c := range []struct{ source, want string }{
		{"return #{" + times("1,", 25_550) + "}", ":25550\r\n"},
		{"return #{" + times("1,", 25_551) + "}", ":25551\r\n"},
		{"local a=1 local t={" + times("a,", 30_000) + "7} local b,c=t,a return type(b)..#b..b[25550]..b[30001]", "$12\r\ntable3000117\r\n"},
		{"local t={" + times("{1},", 26_000) + "unpack({1,2,3})} return {#t,t[26003],#t[25999]}", "*3\r\n:26003\r\n:3\r\n:1\r\n"},
		{"local u=5 local f=function() return u,#{" + times("1,", 26_000) + "} end return {f()}", "*2\r\n:5\r\n:26000\r\n"},
	} {
		m := script.NewMachine(echo{})
		m.LimitMemory(256 << 20)
		if got := evalOn(t, m, c.source); got != c.want {
			t.Errorf("%.60s: got %.100q, want %q", c.source, got, c.want)
		}
	}
}

// Fencing changes the form of a script, and nothing that it does.
func TestFencedScriptsDoTheSame(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"local a,b={},{} local i=1 i,a[i]=2,7 return {i,a[1] or -1,a[2] or -1}", "*3\r\n:2\r\n:7\r\n:-1\r\n"},
		{"local t={} local function k() return 2000,3000 end local function v() return 5,6 end t[k()]=v() return {t[2000],t[3000] or 0}", "*2\r\n:5\r\n:0\r\n"},
		{"local t={} t[1500],t[1600]=(function() return 1,2 end)() return {t[1500],t[1600]}", "*2\r\n:1\r\n:2\r\n"},
		{"local t,u={},{} local i=1 t[i],u[i]=u,t return t[1]==u and u[1]==t", ":1\r\n"},
		{"local a={x=1} local k='x' a[k],a=2,nil return a==nil", ":1\r\n"},
		{"local function f(...) local t={} t[#t+1]=... return t end return f(4,5)", "*1\r\n:4\r\n"},
		{"local t=setmetatable({},{__newindex=function(t,k,v) rawset(t,k,v*2) end}) local i=1 t[i]=4 return t[1]", ":8\r\n"},
		{"local t=setmetatable({},{__concat=function(a,b) return 'cat' end}) return {t..1, 1 ..t, t..t, 'a'..'b'..t}",
			"*4\r\n$3\r\ncat\r\n$3\r\ncat\r\n$3\r\ncat\r\n$4\r\nacat\r\n"},
		{"local t=setmetatable({},{__concat=function(a,b) return 'm' end}) return 'a'..'b'..t..'c'..1 ..2.5", "$3\r\nabm\r\n"},
		{"return 'a'..1 ..2.5 ..true", "-ERR user_script:1: attempt to concatenate a boolean value script: "},
		{"return {} .. 'x'", "-ERR user_script:1: attempt to concatenate a table value script: "},
		{"return 'x'..1e15 ..'y'..0.1", "$10\r\nx1e+15y0.1\r\n"},
		{"\n\nreturn nil..\n'x'", "-ERR user_script:3: attempt to concatenate a nil value script: "},
		{"local t={} for k,v in pairs({a=1,[3000]=2,[true]=3}) do t[tostring(k)]=v end return {t.a,t['3000'],t['true']}", "*3\r\n:1\r\n:2\r\n:3\r\n"},
		{"local t={3,1,2,nil} t[4]=5 t[4]=nil table.sort(t) return t", "*3\r\n:1\r\n:2\r\n:3\r\n"},
		{"local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t", "*3\r\n:3\r\n:2\r\n:1\r\n"},
		{"local t={1,2,3} return {table.remove(t),table.remove(t,1),#t,table.remove({}) or 9, table.remove(t,5) or 8}", "*5\r\n:3\r\n:1\r\n:1\r\n:9\r\n:8\r\n"},
		{"return table.concat({1,2,3},',',0,2)", "-ERR user_script:1: invalid value (nil) at index 0 in table for 'concat' script: "},
		{"return table.concat({[0]='z',1,2,3},',',0,2)", "$5\r\nz,1,2\r\n"},
		{"return table.concat({1,2,3},',',2,9)", "-ERR user_script:1: invalid value (nil) at index 4 in table for 'concat' script: "},
		{"return {table.concat({1,2,3}),table.concat({},'x'),table.concat({1,2},', ')}", "*3\r\n$3\r\n123\r\n$0\r\n\r\n$4\r\n1, 2\r\n"},
		{"return {loadstring('return 1')()}", "*1\r\n:1\r\n"},
		{"return load((function() local n=0 return function() n=n+1 return ({'return ','2'})[n] end end)())()", ":2\r\n"},
		{"return {string.byte('abc',1,-1)}", "*3\r\n:97\r\n:98\r\n:99\r\n"},
		{"return {string.byte('abc'),string.byte('abc',-1),string.byte('abc',10) or 0}", "*3\r\n:97\r\n:99\r\n:0\r\n"},
		{"return #string.char(unpack({},1,3))", "-ERR user_script:1: bad argument #1 to "},
		{"return {('aBc'):upper(),('aBc'):lower(),('aBc'):reverse(),string.char(0,255)}", "*4\r\n$3\r\nABC\r\n$3\r\nabc\r\n$3\r\ncBa\r\n$2\r\n\x00\xff\r\n"},
	} {
		if got := eval(t, c.source); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n got %.120q\nwant %.120q", c.source, got, c.want)
		}
	}
}

// A machine that ran out of memory serves the next script as if nothing had happened.
func TestAFullMachineServesTheNext(t *testing.T) {
	m := script.NewMachine(echo{})
	m.LimitMemory(2 << 20)
	for range 3 {
		if got := evalOn(t, m, "return #{string.byte(string.rep('x',2000000),1,-1)}"); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("got %q", got)
		}
		if got := evalOn(t, m, "local s='x' while true do s=s..s end"); !strings.HasPrefix(got, "-ERR not enough memory") {
			t.Errorf("got %q", got)
		}
		if got := evalOn(t, m, "return 'a'..'b'"); got != "$2\r\nab\r\n" {
			t.Errorf("got %q", got)
		}
	}
}
