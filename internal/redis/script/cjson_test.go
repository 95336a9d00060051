package script_test

import (
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/script"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func eval(t testing.TB, source string, args ...string) string {
	t.Helper()
	m := script.NewMachine(echo{})
	m.LimitMemory(2 << 20)
	return evalOn(t, m, source, args...)
}

// evalOn runs a script, and kills it after many steps.
func evalOn(t testing.TB, m *script.Machine, source string, args ...string) string {
	t.Helper()
	chunk, err := script.Compile("sum", source)
	if err != nil {
		return "-" + err.Error()
	}
	var argv [][]byte
	for _, a := range args {
		argv = append(argv, []byte(a))
	}
	run := m.Start(chunk, nil, argv)
	for steps := 0; !run.Step(); steps++ {
		if steps == 500 {
			run.Kill("took too long")
		}
	}
	var out resp.Writer
	run.Reply(&out)
	return string(out.Bytes())
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`return cjson.encode(cjson.decode(ARGV[1]))`, "$10\r\n[1,2,[{}]]\r\n"},
		{`return cjson.encode(0.1)`, "$3\r\n0.1\r\n"},
		{`return cjson.encode(1/3)`, "$16\r\n0.33333333333333\r\n"},
		{`return cjson.encode(123456789012345)`, "$19\r\n1.2345678901234e+14\r\n"},
		{`return cjson.encode('\1\127é')`, "$16\r\n\"\\u0001\\u007fé\"\r\n"},
		{`return cjson.decode('"\\ud83d\\ude00"')`, "$4\r\n😀\r\n"},
		{`return cjson.decode('1e3')`, ":1000\r\n"},
		{`local t={} t[1]=t return cjson.encode(t)`, "-ERR user_script:1: Cannot serialise, excessive nesting (1001) script: sum, on @user_script:1.\r\n"},
		{`return cjson.encode({[true]=1})`, "-ERR user_script:1: Cannot serialise table: table key must be a number or string script: sum, on @user_script:1.\r\n"},
		{`return cjson.encode(0/0)`, "-ERR user_script:1: Cannot serialise number: must not be NaN or Inf script: sum, on @user_script:1.\r\n"},
		{`return cjson.decode('[1,2')`, "-ERR user_script:1: Expected comma or array end but found T_END at character 5 script: sum, on @user_script:1.\r\n"},
		{`return cjson.decode('{"a" 1}')`, "-ERR user_script:1: Expected colon but found T_NUMBER at character 6 script: sum, on @user_script:1.\r\n"},
	} {
		if got := eval(t, c.source, "[1, 2, [{}]]"); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.source, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,null,true,"\u00e9\n"]}`, `[[[[`, `"\ud83d`, `-`, `1e999`, "\"\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := eval(t, `return cjson.encode(cjson.decode(ARGV[1]))`, text); got == "" {
			t.Error("no reply")
		}
	})
}

// A script may do anything; it ends with a reply, and the next one finds the sandbox as it was.
func FuzzScripts(f *testing.F) {
	for _, s := range []string{"return 1", "return redis.call('x')", "error({})", "error(nil)", "return string.rep('x',10)", "local function f() return f() end",
		"return setmetatable({},{__index=function() error('x') end}).y", "KEYS[1]=2 return KEYS", "for k in pairs(_G) do end", "local t={} t[1]=t return t", "local s='x' while true do s=s..s end", "local s='x' for i=1,99 do s=s..3 end return s", "return #{string.byte(('x'):rep(9e6),1,-1)}",
		"return not not (1)..{}", "local t={} for i=1,1e9 do t[i]={i} end", "return ('a'):rep(9):gsub('(a-)%1','%0')", "return select('#',unpack({},1,7000))",
		"return loadstring('return '..('not '):rep(999)..'1')", "local a,t=1,{} a,t[a],t.x=t,a", "return string.format('%5.3s%q%g',1,2,3)", "goto l ::l:: return table.concat({1,2},',',0,1e18)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if got := eval(t, source); got == "" {
			t.Error("no reply")
		}
	})
}

func TestGlobalsSurviveNothing(t *testing.T) {
	m := script.NewMachine(echo{})
	for i, source := range []string{
		"rawset(_G, 'x', 1)", "x = 1", "_G.x = 1", "string.len = nil", "getmetatable('').__index = nil", "setmetatable(string, {})", "table.x = 1", "math.random = nil",
		"return x or string.len('abc')",
	} {
		chunk, err := script.Compile("sum", source)
		if err != nil {
			t.Fatal(err)
		}
		run := m.Start(chunk, nil, nil)
		for !run.Step() {
		}
		var out resp.Writer
		if run.Reply(&out); !strings.HasPrefix(string(out.Bytes()), "-") {
			t.Errorf("%d: %s: %q", i, source, out.Bytes())
		}
	}
	if got := eval(t, "return {string.len('abc'), ('abc'):len()}"); got != "*2\r\n:3\r\n:3\r\n" {
		t.Errorf("string is broken: %q", got)
	}
}

// However much one instruction copies or compares, a step is short: other clients get their turn, and can kill the script.
func TestSteps(t *testing.T) {
	effort.Alone(t)
	for _, c := range []struct {
		source      string
		least, most int
	}{
		{"local n=0 for i=1,1000000 do n=n+1 end return n", 10, 1000},
		{"local s=string.rep('x',1e5) for i=1,1e3 do s:upper() end", 20, 1e4},
		{"local s='' for i=1,1e4 do s=s..3 end", 10, 1e4},
		{"local s=string.rep('x',1e6) local t=string.rep('x',1e6) for i=1,1e4 do if s<t then return end end", 10, 1e5},
		{"local s=string.rep('x',5e6) local t=string.rep('x',5e6) for i=1,16 do if s<t then return end end", 12, 1e3},
		{"local s=string.rep('x',1e6) local t={} for i=1,8 do t[i]=s end for i=1,3 do table.sort(t) end", 6, 1e4},
		{"local s=string.rep('x',1e6) for i=1,30 do tonumber(s) end", 8, 1e3},
		{"local s=string.rep('x',1e6) for i=1,30 do tonumber(s,16) end", 8, 1e3},
		{"local s=string.rep('x',1e6) for i=1,30 do redis.sha1hex(s) end", 8, 1e3},
		{"return #redis.sha1hex(string.rep('x',1e7))", 4, 1e3},
		{"return #cjson.encode(string.rep('x',5e6))", 6, 1e3},
		{"return #cjson.decode('\"'..string.rep('x',5e6)..'\"')", 8, 1e3},
		{"for i=1,4000 do redis.call('x') end", 3, 1e3},
		{"local function f(...) return f(1,...) end return f()", 10, 1e5},
	} {
		chunk, err := script.Compile("sum", c.source)
		if err != nil {
			t.Fatal(err)
		}
		run := script.NewMachine(echo{}).Start(chunk, nil, nil)
		steps := 1
		for !run.Step() {
			if steps++; steps == effort.Times(1, 2)*c.least {
				run.Kill("that is enough")
			}
		}
		if steps < c.least || steps > c.most {
			t.Errorf("%s took %d steps, want %d to %d", c.source, steps, c.least, c.most)
		}
	}
}
