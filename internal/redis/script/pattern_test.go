package script_test

import (
	"fmt"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/script"
)

// The rules of Lua 5.1's manual, 5.4.1. Each line was checked with Redis 8.
func TestPatterns(t *testing.T) {
	for source, want := range map[string]string{
		`{string.find('hello','l+')}`:                           "[3,4]",
		`{string.find('hello','(l)(l)')}`:                       `[3,4,"l","l"]`,
		`{string.find('a.b','.',1,true)}`:                       "[2,2]",
		`{string.find('abc','b',-1)}`:                           "{}",
		`{string.find('abc','',10)}`:                            "[4,3]",
		`{string.find('abc','^b',2)}`:                           "[2,2]",
		`{string.match('key:123:x','(%a+):(%d+)')}`:             `["key","123"]`,
		`{string.match('  trim  ','^%s*(.-)%s*$')}`:             `["trim"]`,
		`{string.match('f(a(b)c)d','%b()')}`:                    `["(a(b)c)"]`,
		`{string.match('abab','(a)(b)%1%2')}`:                   `["a","b"]`,
		`{string.match('hello','()ll()')}`:                      "[3,5]",
		`{string.match('THE (quick) fox','%f[%a]%a+%f[%A]')}`:   `["THE"]`,
		`{string.match('x]y','[]]')}`:                           `["]"]`,
		`{string.match('a-b','[a%-]+')}`:                        `["a-"]`,
		`{string.match('2024-01-02','^(%d%d%d%d)-(%d+)')}`:      `["2024","01"]`,
		`{string.match('abc','x?b?c')}`:                         `["bc"]`,
		`{string.match('AbC','%u%l%u')}`:                        `["AbC"]`,
		`{string.match('a$','a$')} `:                            "{}",
		`{string.match('a$','a%$')}`:                            `["a$"]`,
		`{string.match('abc','[^a-b]')}`:                        `["c"]`,
		`{string.gsub('hello world','o','0')}`:                  `["hell0 w0rld",2]`,
		`{string.gsub('hello','','-')}`:                         `["-h-e-l-l-o-",6]`,
		`{string.gsub('abc','%w','%0%0',2)}`:                    `["aabbc",2]`,
		`{string.gsub('hello world','(%w+) (%w+)','%2 %1')}`:    `["world hello",1]`,
		`{string.gsub('$a $b','%$(%w)',{a='1'})}`:               `["1 $b",2]`,
		`{string.gsub('abc','b',function(x) return x..x end)}`:  `["abbc",1]`,
		`{string.gsub('abc','b',function(x) return false end)}`: `["abc",1]`,
		`{string.gsub('abc','^a','x')}`:                         `["xbc",1]`,
		`{string.gsub('aaa','^a','x')}`:                         `["xaa",1]`,
		`{string.gsub('abc','.','x',0)}`:                        `["abc",0]`,
		`{string.gsub('a b','%s+$','')}`:                        `["a b",0]`,
		`(function() local t={} for k,v in string.gmatch('a=1, b=2','(%w+)=(%w+)') do t[#t+1]=k..v end return t end)()`: `["a1","b2"]`,
		`(function() local t={} for w in string.gmatch('one two','%a+') do t[#t+1]=w end return t end)()`:               `["one","two"]`,
		`(function() local t={} for p in string.gmatch('ab','()') do t[#t+1]=p end return t end)()`:                     "[1,2,3]",
		`string.format('%5d|%-5d|%05d|%+d',42,42,42,42)`:                                                                `"   42|42   |00042|+42"`,
		`string.format('%5.1f|%e|%g|%g|%.3g',3.14159,12345.678,1e20,0.1,1234567)`:                                       `"  3.1|1.234568e+04|1e+20|0.1|1.23e+06"`,
		`string.format('%s %q %10s|%-10s|%.2s','a','b"c','x','y','xyz')`:                                                `"a \"b\\\"c\"          x|y         |xy"`,
		`string.format('%x %X %o %c %u %i %%',255,255,8,65,7,-3)`:                                                       `"ff FF 10 A 7 -3 %"`,
		`string.format('%d',3.99)`:      `"3"`,
		`string.format('%x',-1)`:        `"ffffffffffffffff"`,
		`string.format('%5s|%g',1,1/0)`: `"    1|inf"`,
	} {
		want = fmt.Sprintf("$%d\r\n%s\r\n", len(want), want)
		if got := eval(t, "return cjson.encode("+source+")"); got != want {
			t.Errorf("%s:\n got %q\nwant %q", source, got, want)
		}
	}
	for source, want := range map[string]string{
		`string.find('a','[a')`:        "malformed pattern (missing ']')",
		`string.find('a','%')`:         "malformed pattern (ends with '%')",
		`string.match('a','a)')`:       "invalid pattern capture",
		`string.find('a','(a')`:        "unfinished capture",
		`string.find('a','%1')`:        "invalid capture index",
		`string.find('a','%b')`:        "unbalanced pattern",
		`string.gsub('a','a','%2')`:    "invalid capture index",
		`string.gsub('a','a',{a={}})`:  "invalid replacement value (a table)",
		`string.format('%y',1)`:        "invalid option '%y' to 'format'",
		`string.format('%-+ #0-5d',1)`: "invalid format (repeated flags)",
		`string.format('%d')`:          "bad argument #2 to 'format' (no value)",
		`string.find(string.rep('a',300000),string.rep('a?',300000))`: "pattern too complex",
	} {
		want = "-ERR user_script:1: " + want + " script: sum, on @user_script:1.\r\n"
		if got := eval(t, "return "+source); got != want {
			t.Errorf("%s:\n got %q\nwant %q", source, got, want)
		}
	}
}

// A pattern that takes forever is a script that takes forever: other clients get their turn, and it can be killed.
func TestAnEndlessPatternIsKilled(t *testing.T) {
	chunk, err := script.Compile("sum", "return string.find(string.rep('a',50000), string.rep('a?',5000)..'b')")
	if err != nil {
		t.Fatal(err)
	}
	run := script.NewMachine(echo{}).Start(chunk, nil, nil)
	for range 5 {
		if run.Step() {
			t.Fatal("it has ended")
		}
	}
	run.Kill("enough")
	if !run.Step() {
		t.Error("it goes on")
	}
}

// FuzzPatterns tries what a client may send as a pattern. It must end, or be killable.
func FuzzPatterns(f *testing.F) {
	for _, p := range []string{"%a+", "[^%s]-", "(a*)%1", "%b()", "%f[%w]", "^a$", "(()", "[]-a]", "%", "[%", "a-b", ".-.-.-x"} {
		f.Add("some text (a)", p, "%0%1")
	}
	f.Fuzz(func(t *testing.T, text, pattern, by string) {
		chunk, err := script.Compile("sum", "return {pcall(string.gsub, ARGV[1], ARGV[2], ARGV[3]), pcall(string.find, ARGV[1], ARGV[2], 2)}")
		if err != nil {
			t.Fatal(err)
		}
		run := script.NewMachine(echo{}).Start(chunk, nil, [][]byte{[]byte(text), []byte(pattern), []byte(by)})
		for steps := 0; !run.Step(); steps++ {
			if steps == 20 {
				run.Kill("enough")
			}
		}
	})
}
