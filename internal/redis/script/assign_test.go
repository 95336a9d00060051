package script_test

import (
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// What this Lua machine or its compiler would compute in another way than Redis. The replies are those of Redis 8.0.
func TestWhatRedisComputes(t *testing.T) {
	effort.Alone(t)
	for _, c := range []struct{ source, want string }{
		{"local a,b=5,7; a,b=b,a; return a..','..b", "$3\r\n7,5\r\n"},
		{"local a,b=5,7 a,b=0,a return a..','..b", "$3\r\n0,5\r\n"},
		{"local a,b,c=1,2,3 a,b,c=c,a,b return a..b..c", "$3\r\n312\r\n"},
		{"local i,t=1,{} i,t[i]=i+1,20 return {t[1] or 0,t[2] or 0,i}", "*3\r\n:20\r\n:0\r\n:2\r\n"},
		{"local t,u={},{} local o=t t,t.a=u,9 return {o.a or 0,u.a or 0}", "*2\r\n:9\r\n:0\r\n"},
		{"local t,u={},{} local o=t t.a,t=9,u return {o.a or 0,u.a or 0}", "*2\r\n:9\r\n:0\r\n"},
		{"local i,t=1,{} t[i],i=20,5 return {t[1] or 0,t[5] or 0,i}", "*3\r\n:20\r\n:0\r\n:5\r\n"},
		{"local a={} local b=a a.x,a=a,1 return {a,b.x==b}", "*2\r\n:1\r\n:1\r\n"},
		{"local a,b=1,2 local function f() return a,b end a,b=b,a return {f()}", "*2\r\n:2\r\n:1\r\n"},
		{"local function f(a,b) a,b=b,a return a..b end return f(1,2)", "$2\r\n21\r\n"},
		{"local function f(...) local a,b=1,2 a,b=... return {a,b or 'nil'} end return {f(7,8,9),f(7)}", "*2\r\n*2\r\n:7\r\n:8\r\n*2\r\n:7\r\n$3\r\nnil\r\n"},
		{"local function f() return 1,2,3 end local a,b,c,d a,b,c=f() d,a=f(),9 b,c=(f()) return {a,d,tostring(b),tostring(c)}", "*4\r\n:9\r\n:1\r\n$1\r\n1\r\n$3\r\nnil\r\n"},
		{"local n=0 local function f() n=n+1 return n end local a,b a,b=f(),f(),f() return {a,b,n}", "*3\r\n:1\r\n:2\r\n:3\r\n"},
		{"local n=0 local function f() n=n+1 return n end local a,b a=f(),f() return {a,n}", "*2\r\n:1\r\n:2\r\n"},
		{"local a,b,c=1,2,3 a,b,c=9 return {a,tostring(b),tostring(c)}", "*3\r\n:9\r\n$3\r\nnil\r\n$3\r\nnil\r\n"},
		{"local i,t=1,{} local function n() i=i+1 return i end t[i]=n() return {t[1] or 0,t[2] or 0}", "*2\r\n:0\r\n:2\r\n"},
		{"local i,t=1,{} local function n() i=i+1 return i end t[i],t[10]=n(),n() return {t[1] or 0,t[2] or 0,t[3] or 0}", "*3\r\n:0\r\n:0\r\n:2\r\n"},
		{"local i,t=1,{} local function n() i=i+1 return i end t[i+0]=n() return {t[1] or 0,t[2] or 0}", "*2\r\n:2\r\n:0\r\n"},
		{"local t,u={},{} local o=t local function f() t=u return 1 end local k='x' t[k]=f() return {o.x or 0,u.x or 0}", "*2\r\n:0\r\n:1\r\n"},
		{"local t={{},{}} local function f() t={{},{}} return 1 end t[1].x,t[2].x=f(),f() return {t[1].x or 0,t[2].x or 0}", "*2\r\n:0\r\n:0\r\n"},
		{"local a,b,c=nil,2,1 a=(b or c) and a return tostring(a)", "$3\r\nnil\r\n"},
		{"local a,b,c=1,2,3 a=(b or c) and a return a", ":1\r\n"},
		{"local a,b,c=1,false,3 a=b and c or a and (c and a or b) return tostring(a)", "$1\r\n1\r\n"},
		{"local a,b=1,2 local function f() return a end a=(b or a) and f() return a", ":1\r\n"},
		{"local t={1,2} t={t[2],t,#t} return {t[1],t[2][1],t[3]}", "*3\r\n:2\r\n:1\r\n:2\r\n"},
		{"local s='a' s=s..s..(s and s or 'b') return s", "$3\r\naaa\r\n"},
		{"local fs,a,b={},1,2 for i=1,3 do local x,y=i,a x,y=y,x a,b=b,a fs[i]=function() return x,y end end local p,q=fs[3]() return {p,q,a,b,(fs[1]())}", "*5\r\n:1\r\n:3\r\n:2\r\n:1\r\n:1\r\n"},
		{"local a,b=1,2 a,b=b return {a,tostring(b)}", "*2\r\n:2\r\n$3\r\nnil\r\n"},
		{"\nlocal t,i={} \ni,t[i]=\n1,2", "-ERR user_script:4: table index is nil script: sum, on @user_script:4.\r\n"},
		{"local a,b a,b=1,x.y.z", "-ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: sum, on @user_script:1.\r\n"},
		{"local f; while true do do local x=1; f=function() return x end; break end end; local y=5; return f()", ":1\r\n"},
		{"local f for i=1,3 do if i==2 then local x=i f=function() return x end break end end local a,b,c,d,e,g=9,9,9,9,9,9 return f()", ":2\r\n"},
		{"local f for _,v in ipairs({4,5}) do if v==5 then local x=v f=function() x=x+1 return x end break end end local a,b,c,d,e,g=9,9,9,9,9,9 return f()+f()", ":13\r\n"},
		{"local f,n=nil,0 repeat n=n+1 if n>2 then local x=n f=function() return x end break end until false local a,b,c=9,9,9 return f()", ":3\r\n"},
		{"local f local function g() for i=1,2 do for j=1,2 do if j==2 then local x=i*10 f=f or function() return x end break end end end local a,b,c,d,e,h,k,l=9,9,9,9,9,9,9,9 return f() end return g()", ":10\r\n"},
		{"local f=5 local f=function() return f end return f()", ":5\r\n"},
		{"local f=5 local function f() return type(f) end return f()", "$8\r\nfunction\r\n"},
		{"local n=0 for i='1','3',' 1 ' do n=n+i end return n", ":6\r\n"},
		{"for i=1,{} do end", "-ERR user_script:1: 'for' limit must be a number script: sum, on @user_script:1.\r\n"},
		{"for i='x',2 do end", "-ERR user_script:1: 'for' initial value must be a number script: sum, on @user_script:1.\r\n"},
		{"for i=1,2,nil do end", "-ERR user_script:1: 'for' step must be a number script: sum, on @user_script:1.\r\n"},
		{"return \"010\"+1", ":11\r\n"},
		{"return {\"0x10\"+0,\" 7 \"-1,\"1e2\"*2,-\"3\",10/\"4\",\"7\"%\"4\",\"2\"^\"3\"}", "*7\r\n:16\r\n:6\r\n:200\r\n:-3\r\n:2\r\n:3\r\n:8\r\n"},
		{"return \"1_0\"+1", "-ERR user_script:1: attempt to perform arithmetic on a string value script: sum, on @user_script:1.\r\n"},
		{"return 1+\"0b11\"", "-ERR user_script:1: attempt to perform arithmetic on a string value script: sum, on @user_script:1.\r\n"},
		{"return -\"x\"", "-ERR user_script:1: attempt to perform arithmetic on a string value script: sum, on @user_script:1.\r\n"},
		{"return \"10\"+{}", "-ERR user_script:1: attempt to perform arithmetic on a table value script: sum, on @user_script:1.\r\n"},
		{"return nil+\"1\"", "-ERR user_script:1: attempt to perform arithmetic on a nil value script: sum, on @user_script:1.\r\n"},
		{"local t=setmetatable({},{__add=function(a,b) return 'm' end,__mod=function() return 'n' end}) return {t+\"1\",\"1\"+t,t%2,\"2\"%t,2%t}", "*5\r\n$1\r\nm\r\n$1\r\nm\r\n$1\r\nn\r\n$1\r\nn\r\n$1\r\nn\r\n"},
		{"return {}%2", "-ERR user_script:1: attempt to perform arithmetic on a table value script: sum, on @user_script:1.\r\n"},
		{"return {tostring(1%0.1),tostring(5.3%0.1),tostring(5%-3),tostring(-5%3),tostring(5%math.huge),tostring(1e15%7)}", "*6\r\n$1\r\n0\r\n$3\r\n0.1\r\n$2\r\n-1\r\n$1\r\n1\r\n$4\r\n-nan\r\n$1\r\n6\r\n"},
		{"return tostring(0/0)..tostring(-(0/0))..tostring(\"nan\"+1)", "$10\r\n-nannannan\r\n"},
		{"return #rawset({},1,2)", ":1\r\n"},
		{"local t={1,2,3} table.insert(t,-1,9) return {#t,t[-1],t[2] or 'nil'}", "*3\r\n:4\r\n:9\r\n:1\r\n"},
	} {
		if got := eval(t, c.source); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.source, got, c.want)
		}
	}
}
