package script_test

import (
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/script"
)

// Nothing that one script tries to leave for the next one is there, whether the attempt is refused or does nothing.
func TestAScriptLeavesNothingForTheNext(t *testing.T) {
	m := script.NewMachine(echo{})
	attempts := []string{
		"setmetatable(5,{__index=function() return 7 end,__add=function() return 7 end})",
		"setmetatable(true,{__index={a=1}})",
		"setmetatable('x',{__index=function() return 7 end})",
		"setmetatable(pcall,{__index={a=1}})",
		"setmetatable(cjson.null,{__index={a=1}})",
		"setmetatable(math,{__index={a=1}})",
		"setmetatable(_G,nil)",
		"rawset(_G,'left',1)",
		"rawset(math,'left',1)",
		"rawset(getmetatable(''),'__index',nil)",
		"rawset(getmetatable(_G),'__index',nil)",
		"getmetatable('').__index=nil",
		"getmetatable('').__concat=function() return 7 end",
		"getmetatable(_G).__index={left=1}",
		"_G.left=1",
		"_G['math']={}",
		"left=1",
		"math['floor']=nil",
		"string.rep=nil",
		"function redis.left() end",
		"table.insert(_G,1)",
		"table.insert(math,1,1)",
		"table.insert(math,'left')",
		"table.sort(math,function() math.left=1 end)",
		"table.remove(math,1)",
		"for k in pairs(math) do math[k]=nil end",
		"local t={} for k,v in pairs(redis) do t[k]=v end t.left=1",
		"next(math,'left')",
		"_G['(set)'](math,'left',1)",
		"_G['(set)'](getmetatable(''),'left',1)",
		"loadstring('left=1')()",
		"KEYS.left=1 ARGV.left=1 setmetatable(KEYS,{__index=function() return 7 end})",
		"KEYS=nil",
		"redis.setresp(3)",
		"math.randomseed(7)",
		"string.gsub('a','a',function() string.left=1 end)",
		"cjson.null.left=1",
	}
	const seen = `local n,r=0,{} for _,t in ipairs({_G,math,redis,string,table,bit,cjson,os,KEYS,ARGV,getmetatable(''),getmetatable(_G)}) do for k in pairs(t) do n=n+1 end end
for _,f in ipairs({function() return (5).a end,function() return 5+{} end,function() return (true).a end,function() return pcall.a end,function() return cjson.null.a end,
function() return math.left end,function() return left end,function() return ('x').left end,function() return 'x'..nil end,function() return KEYS.left end}) do
local ok,v=pcall(f) r[#r+1]=tostring(ok)..' '..tostring(v) end
return {n,math.random(),('x'):rep(2),#_G,#math,tostring(math[1]),{double=1.5},tostring(getmetatable(5)),unpack(r)}`
	want := evalOn(t, m, seen)
	for _, attempt := range attempts {
		said := evalOn(t, m, attempt)
		if got := evalOn(t, m, seen); got != want {
			t.Errorf("%s replied %q, and left\n%s instead of\n%s", attempt, said, lines(got), lines(want))
			m = script.NewMachine(echo{})
		}
	}
}

func lines(reply string) string { return strings.ReplaceAll(reply, "\r\n", " ") }
